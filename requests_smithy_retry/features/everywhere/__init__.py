"""Retries in every session of a process: ``install`` from within, ``run`` from outside (contract 10.5)."""
