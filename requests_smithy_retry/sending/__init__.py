"""One call of ``send``: the loop, the operation that decides for it, and the replay of bodies."""
