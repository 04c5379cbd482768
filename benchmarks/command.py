"""The options that the scripts of this folder share: a quick way, and a file for the figures."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any


def parser(description: str | None, quick: str) -> argparse.ArgumentParser:
    """A parser of ``--quick`` and ``--json``, to which a script adds its own.

    :param description: the script's docstring; its first line is shown.
    :param quick: a phrase for the effect of ``--quick``.
    """
    made = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    made.add_argument("--quick", action="store_true", help=quick)
    made.add_argument("--json", type=Path, metavar="FILE", help="write every figure to FILE")
    return made


def write(result: dict[str, Any], file: Path | None) -> None:
    """Write the figures where ``--json`` said, if it was given."""
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
