"""The quotas of retries: the buckets of a scope, in memory, and on Redis or Valkey."""
