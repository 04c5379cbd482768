"""The heart: a machine that decides, a driver that acts, and the scopes that operations share."""
