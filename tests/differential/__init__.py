"""The same program with plain `requests` and with ours, everything that it can see compared.

A seed makes programs (`programs.py`): answers of a raw server, and lines of Python around a session. Each runs with
`HTTPAdapter` and with `RetryAdapter` (`compare.py`). What differs on purpose is a named rule with its section of the
contract (`rules.py`); anything else is printed as a program of its own that shows it. Only public names are used.

    python -m tests.differential --seconds 600 --seed 7
"""
