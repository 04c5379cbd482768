"""The quotas of retries: the buckets of a scope, in memory, on Redis or Valkey, and in shared memory."""
