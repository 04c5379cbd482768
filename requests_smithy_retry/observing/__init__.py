"""The record of operations: histories, events, log records and metric labels."""
