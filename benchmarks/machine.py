"""Where a figure was taken: the processor, the system, the interpreter and the packages; no name of a host, no path."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from requests_smithy_retry import __version__

PACKAGES = (
    "requests",
    "urllib3",
    "tenacity",
    "stamina",
    "backoff",
    "retryhttp",
    "httpx",
    "httpx-retries",
    "botocore",
)


def describe() -> dict[str, Any]:
    """Plain values, for JSON."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": {"requests-smithy-retry": __version__, **{name: _version(name) for name in PACKAGES}},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or "unknown")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def forget_settings() -> None:
    """Proxies and retry settings of the caller's environment are no part of a comparison."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.startswith(("SMITHY_RETRY_", "AWS_")):
            del os.environ[name]
