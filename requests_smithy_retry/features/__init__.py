"""The features: each is a module or a folder here that can be deleted, and the rest works without it."""
