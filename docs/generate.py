"""Writes the pages that are made from the code: ``python docs/generate.py [NAME ...]``, all of them without a name."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import classification_page

HERE = Path(__file__).parent
PAGES = {"classification": (HERE / "reference" / "classification.md", classification_page.build)}

if __name__ == "__main__":
    logging.getLogger("requests_smithy_retry").addHandler(logging.NullHandler())
    for name in sys.argv[1:] or PAGES:
        path, build = PAGES[name]
        path.parent.mkdir(exist_ok=True)
        path.write_text(build(), encoding="utf-8")
