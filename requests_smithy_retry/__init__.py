"""The retry layer for requests. Under construction."""
