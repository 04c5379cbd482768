"""Which SDKs do retries reach, and which troubles do they ride out? ``python -m benchmarks.sdks``."""
