"""The features: each is a module or a folder here that can be deleted. What is left then works without it."""
