"""The demo: several clients, a faulty server for each, and tables of the results.

``plan`` is the workload with its faults; ``clients`` are the compared clients; ``contest`` runs each in a child process
and watches it; ``results`` judges and counts. ``scenes`` are servers in trouble, which many clients meet at once.
``report`` shows the results, ``command`` is the command.
"""
