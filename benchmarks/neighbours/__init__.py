"""Other people's test suites, plain and with retries under every Session: ``python -m benchmarks.neighbours``."""
