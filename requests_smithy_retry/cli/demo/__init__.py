"""The demo: several clients, a faulty server for each, and tables of the results.

``plan`` is the workload, ``fault_script`` its server side, ``workload`` its client side, which runs in a child process;
``contender`` runs and supervises such a child, ``verdicts`` judges each operation, ``summary`` counts. ``scenes`` are
servers in trouble, which many clients meet at once, and ``crowd`` are these clients. ``report`` shows the results,
``command`` is the command.
"""
