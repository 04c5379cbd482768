"""The wait before an attempt: backoff, server hints, and the rate limiter of adaptive mode."""
