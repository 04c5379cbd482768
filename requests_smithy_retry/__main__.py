"""``python -m requests_smithy_retry``: the command line, under another name."""

from __future__ import annotations

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
