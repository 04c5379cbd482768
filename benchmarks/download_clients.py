"""The clients of the comparison of downloads: each downloads a URL into a file, as its users write it.

The loops of pip and huggingface_hub are written here in a few lines, after what these programs do.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from requests_smithy_retry import RetryAdapter

if TYPE_CHECKING:
    from collections.abc import Callable

PART = 65_536
TRIES = 6
TIMEOUT: dict[str, Any] = {"timeout": (5, 0.3)}
IDENTITY = {"Accept-Encoding": "identity"}


def _session(adapter: HTTPAdapter) -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session


def _copy(response: requests.Response, file: IO[bytes]) -> None:
    response.raise_for_status()
    for part in response.iter_content(PART):
        file.write(part)


def _once(adapter: HTTPAdapter, url: str, file: IO[bytes]) -> None:
    with _session(adapter) as session, session.get(url, stream=True, **TIMEOUT) as response:
        _copy(response, file)


def ours(url: str, file: IO[bytes]) -> None:
    """`RetryAdapter(max_attempts=6, initial_backoff=0)`: as many tries as the others have, and nothing around it."""
    _once(RetryAdapter(max_attempts=TRIES, initial_backoff=0), url, file)


def plain(url: str, file: IO[bytes]) -> None:
    """Plain requests."""
    _once(HTTPAdapter(), url, file)


def urllib3_retry(url: str, file: IO[bytes]) -> None:
    """`HTTPAdapter(max_retries=Retry(5))`, which retries up to the head."""
    _once(HTTPAdapter(max_retries=Retry(TRIES - 1, status_forcelist=[503])), url, file)


def tenacity_around(url: str, file: IO[bytes]) -> None:
    """Tenacity around the whole download, which begins anew each time."""
    import tenacity

    @tenacity.retry(stop=tenacity.stop_after_attempt(TRIES), reraise=True)
    def download() -> None:
        file.seek(0)
        file.truncate()
        _once(HTTPAdapter(), url, file)

    download()


def like_pip(url: str, file: IO[bytes]) -> None:
    """The loop of pip: `Range` and `If-Range` with whatever validator there is; a 200 begins anew."""
    with _session(HTTPAdapter(max_retries=Retry(TRIES - 1, status_forcelist=[503]))) as session:
        headers, validator, total, came = dict(IDENTITY), "", 0, 0
        for _ in range(TRIES):
            try:
                with session.get(url, headers=headers, stream=True, **TIMEOUT) as response:
                    response.raise_for_status()
                    if response.status_code == 200:
                        file.seek(0)
                        file.truncate()
                        came, total = 0, int(response.headers.get("content-length", 0))
                        validator = response.headers.get("etag", response.headers.get("last-modified", ""))
                    for part in response.iter_content(PART):
                        file.write(part)
                        came += len(part)
            except (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError):
                pass
            else:
                if came >= total:
                    return
            headers = {**IDENTITY, "Range": f"bytes={came}-"}
            if validator:
                headers["If-Range"] = validator
    raise requests.ConnectionError("incomplete")


def like_huggingface(url: str, file: IO[bytes]) -> None:
    """The loop of huggingface_hub: `Range` alone, five retries, and a look at the length at the end."""
    total: int | None = None
    with _session(HTTPAdapter()) as session:
        for left in reversed(range(TRIES)):
            came = file.tell()
            headers = {**IDENTITY, **({"Range": f"bytes={came}-"} if came else {})}
            try:
                with session.get(url, headers=headers, stream=True, **TIMEOUT) as response:
                    response.raise_for_status()
                    if total is None and "content-length" in response.headers:
                        total = came + int(response.headers["content-length"])
                    for part in response.iter_content(PART):
                        file.write(part)
                break
            except (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError):
                if not left:
                    raise
    if total is not None and total != file.tell():
        raise OSError(f"{file.tell()} bytes instead of {total}")


def urllib3_alone(url: str, file: IO[bytes]) -> None:
    """urllib3 by itself, with `Retry(5)`."""
    retries = urllib3.Retry(TRIES - 1, status_forcelist=[503])
    with urllib3.PoolManager(cert_reqs="CERT_NONE") as pool:
        response = pool.request("GET", url, preload_content=False, retries=retries, timeout=0.3, headers=IDENTITY)
        if response.status >= 400:
            raise urllib3.exceptions.HTTPError(str(response.status))
        shutil.copyfileobj(response, file, PART)


def curl(url: str, file: IO[bytes]) -> None:
    """A loop around `curl -C -`, as scripts have it."""
    name = str(file.name)
    command = ["curl", "-sS", "-f", "-k", "--max-time", "3", "-Y", "1", "-y", "1", "-C", "-", "-o", name, url]
    for _ in range(TRIES):
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return
    raise OSError("curl failed")


CLIENTS: dict[str, Callable[[str, IO[bytes]], None]] = {
    "ours": ours,
    "requests": plain,
    "requests, Retry(5)": urllib3_retry,
    "urllib3, Retry(5)": urllib3_alone,
    "tenacity": tenacity_around,
    "like pip": like_pip,
    "like huggingface_hub": like_huggingface,
    "curl -C -": curl,
}
