"""A pytest plugin: every Session of the suite gets the adapter (``python -m pytest -p with_retries``)."""

from requests_smithy_retry import install

install()
