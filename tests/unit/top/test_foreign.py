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


class Limit(Exception):
    """A program's own."""


class Refused(OSError):
    """A program's own, which urllib3 takes for the network's all the same."""


OURS = [
    *(ValueError, OSError, TimeoutError, ConnectionResetError, socket.gaierror, ssl.SSLError, zlib.error, Refused),
    *(http.client.IncompleteRead, requests.ConnectionError, urllib3.exceptions.DecodeError),
    *HTTPResponse.DECODER_ERROR_CLASSES,
]


@pytest.mark.parametrize(("kind", "foreign"), [*((kind, False) for kind in OURS), (Limit, True)])
def test_what_the_network_can_cause_is_no_strangers(kind, foreign):
    """Python, the libraries below and the decoders are known."""
    assert foreign is is_foreign(kind.__new__(kind))


def test_without_the_module_of_signals_there_is_no_handler(monkeypatch):
    """A program that has not imported it has set none, so nothing that is raised is an interruption."""
    monkeypatch.delitem(sys.modules, "signal")
    assert not is_interruption(TimeoutError())
    assert "signal" not in sys.modules
