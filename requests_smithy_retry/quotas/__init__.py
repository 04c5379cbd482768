"""Retry quotas that processes share (contract 6.4): a bucket on Redis or Valkey, and one in shared memory.

Import a bucket from the file that owns it: :mod:`.redis` needs the extra ``redis``, :mod:`.shared_memory` needs a
platform with file locks.
"""
