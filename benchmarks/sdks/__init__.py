"""Clients of vendors' services, against answers as their vendors document them."""
