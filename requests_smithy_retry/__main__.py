"""``python -m requests_smithy_retry``: the command line. Its command ``run`` needs no extra."""

from __future__ import annotations

import sys

from .features.everywhere.run import run

if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        sys.exit(run(sys.argv[2:]))
    from .cli import main

    sys.exit(main())
