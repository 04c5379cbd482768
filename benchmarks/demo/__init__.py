"""The demo, the first thing that a newcomer runs: plain requests, urllib3's Retry and ours under the same failures.

``plan`` is the workload with its faults; ``clients`` are the compared clients; ``contest`` runs each in a child process
and watches it; ``scenes`` are servers in trouble, which many clients meet at once; ``report`` judges, counts and shows.
"""
