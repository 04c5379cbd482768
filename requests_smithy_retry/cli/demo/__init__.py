"""The demo: three clients, one misbehaving server each, and a table of what came of it.

``plan`` is the workload, ``fault_script`` the server's side of it, ``workload`` the client's side, which runs in a
child process; ``contender`` runs and watches such a child, ``verdicts`` judges what both sides say, ``summary`` counts
it, ``report`` shows it, ``command`` is the command.
"""
