"""The generators of tables and pages. `docs/generate.py` lists the page and the block that each of them fills."""
