"""The progress bar of the page on downloads, run with the library that draws it."""

from __future__ import annotations

from typing import Any

import pytest
import requests
import tqdm

from requests_smithy_retry import mount
from requests_smithy_retry.testing import FaultServer, Reply
from tests.project.test_docs import ROOT, blocks_of

BODY = bytes(300_000)


def test_tqdm_draws_one_bar_for_a_download(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body of several parts has one bar, which ends at the body's length and is closed."""
    bars: list[Any] = []
    drawn = tqdm.tqdm
    monkeypatch.setattr(tqdm, "tqdm", lambda *args, **kwargs: (bars.append(drawn(*args, **kwargs)), bars[-1])[1])
    space: dict[str, Any] = {"requests": requests, "mount": mount}
    blocks = blocks_of(ROOT / "docs/howto/large-downloads.md")
    exec(next(block for block in blocks if "from tqdm import tqdm" in block), space)
    with FaultServer(default=Reply(body=BODY)) as server, space["session"] as session:
        session.get(server.url, timeout=60)
    assert [(len(BODY), len(BODY), True)] == [(bar.total, bar.n, bar.disable) for bar in bars]
