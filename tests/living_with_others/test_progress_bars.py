"""The progress bars of the page on downloads, run with the libraries that draw them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import requests
import rich.progress
import tqdm

from requests_smithy_retry import mount
from requests_smithy_retry.testing import FaultServer, Reply
from tests.project.test_docs import ROOT, blocks_of

BODY = bytes(300_000)


def block_with(import_line: str) -> str:
    page = Path(ROOT, "docs/howto/large-downloads.md")
    return next(block for block in blocks_of(page) if import_line in block)


def test_tqdm_draws_one_bar_for_a_download(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body of several parts has one bar, which ends at the body's length and is closed."""
    bars: list[Any] = []

    class Counted(tqdm.tqdm):  # type: ignore[type-arg]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            bars.append(self)

    monkeypatch.setattr(tqdm, "tqdm", Counted)
    space: dict[str, Any] = {"requests": requests, "mount": mount}
    exec(block_with("from tqdm import tqdm"), space)
    with FaultServer(default=Reply(body=BODY)) as server, space["session"] as session:
        session.get(server.url, timeout=60)
    assert [(len(BODY), len(BODY), True)] == [(bar.total, bar.n, bar.disable) for bar in bars]


def test_rich_has_one_task_for_a_download(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body of several parts has one task, which ends at the body's length."""
    made: list[Any] = []

    class Kept(rich.progress.Progress):
        def __init__(self) -> None:
            super().__init__(disable=True)
            made.append(self)

    monkeypatch.setattr(rich.progress, "Progress", Kept)
    with FaultServer(default=Reply(body=BODY)) as server:
        block = block_with("from rich.progress import Progress").replace("https://example.com/large.bin", server.url)
        exec(block, {"requests": requests, "mount": mount})
    assert [(len(BODY), len(BODY))] == [(task.completed, task.total) for task in made[0].tasks]
