"""A deterministic simulation of many clients with retry policies against one service, in virtual time."""
