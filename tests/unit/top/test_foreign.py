"""Exceptions that the library must not handle (contract 2)."""

from __future__ import annotations

import http.client
import socket
import ssl
import sys
import zlib

import pytest
import requests
import urllib3.exceptions
from urllib3.response import HTTPResponse

from requests_smithy_retry.interruptions import is_foreign, is_interruption

OURS = [
    *(ValueError, OSError, TimeoutError, ConnectionResetError, socket.gaierror, ssl.SSLError, zlib.error),
    *(http.client.IncompleteRead, requests.ConnectionError, urllib3.exceptions.DecodeError),
    *HTTPResponse.DECODER_ERROR_CLASSES,
]


@pytest.mark.parametrize("kind", OURS)
def test_what_the_network_can_cause_is_no_strangers(kind):
    """Python, the libraries below and the decoders are known."""
    assert not is_foreign(kind.__new__(kind))


def test_what_a_program_defines_is_foreign():
    """A program's exception is foreign, unless it is an OSError, which urllib3 takes for the network's own."""

    class Limit(Exception):
        pass

    class Refused(OSError):
        pass

    assert [True, False] == [is_foreign(Limit()), is_foreign(Refused())]


def test_without_the_module_of_signals_there_is_no_handler(monkeypatch):
    """A program that has not imported it has set none, so nothing that is raised is an interruption."""
    monkeypatch.delitem(sys.modules, "signal")
    assert not is_interruption(TimeoutError())
    assert "signal" not in sys.modules
