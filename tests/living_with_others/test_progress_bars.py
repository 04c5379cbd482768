"""The programs of the page on downloads: its progress bar is run with the library that draws it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
import tqdm

from requests_smithy_retry import mount
from requests_smithy_retry.testing import CutBody, FakeClock, FaultServer, Reply
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


def test_only_a_whole_download_gets_its_name(tmp_path: Path) -> None:
    """One that breaks off goes on; one that changes, is stopped, or takes too long, leaves what came beside it."""
    program = next(iter(blocks_of(ROOT / "docs/howto/large-downloads.md"))).rpartition("\n\n\n")[0]
    space: dict[str, Any] = {}
    exec(program, space)
    space["session"] = mount(requests.Session(), clock=FakeClock())
    whole = Reply(200, {"ETag": '"1"'}, BODY)
    rest = Reply(206, {"ETag": '"1"', "Content-Range": "bytes 100000-299999/300000"}, BODY[100_000:])
    cut, file = CutBody(whole, at=100_000), tmp_path / "file"
    with FaultServer([cut, rest]) as server, space["session"]:
        space["download"](server.url, str(file))
        assert (["file"], BODY) == ([path.name for path in tmp_path.iterdir()], file.read_bytes())
        file.unlink()
        server.script([cut, Reply(200, {"ETag": '"2"'}, BODY)])
        with pytest.raises(requests.exceptions.ChunkedEncodingError, match="not continued: the etag has changed"):
            space["download"](server.url, str(file))
        assert ["file.part"] == [path.name for path in tmp_path.iterdir()]
        space["time"] = SimpleNamespace(monotonic=iter([0.0, 61.0, 100.0]).__next__)
        for _ in range(2):
            server.script([whole])
            with pytest.raises(TimeoutError, match="stopped"):
                space["download"](server.url, str(file), seconds=60)
            assert ["file.part"] == [path.name for path in tmp_path.iterdir()]
            space["stop"].set()
