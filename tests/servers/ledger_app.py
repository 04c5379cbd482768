"""A service that writes down each POST when it acts on it: one line of the file ``LEDGER``."""

import os
import time

_file = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND)


def application(environ, start_response):
    """Apply ``POST /NAME``; ``/slow/NAME`` takes 20 ms before that, and as long afterwards."""
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    path = environ["PATH_INFO"]
    slow = 0.02 * path.startswith("/slow/")
    time.sleep(slow)
    if environ["REQUEST_METHOD"] == "POST":
        os.write(_file, body + b"\n")
    time.sleep(slow)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
