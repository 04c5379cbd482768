"""May there be another attempt? The built-in strategies, their tokens, and what adapts a foreign strategy."""
