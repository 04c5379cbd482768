"""Runs this folder with the built-in strategy, with a subclass of it, or with a wrapper by composition in its place.

pytest tests/behaviour --strategy subclass
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from requests_smithy_retry import adapter as module
from tests.kinds import KINDS


@pytest.fixture(autouse=True)
def _of_a_kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each adapter that makes its own strategy gets one of the kind that is asked for."""
    kind = request.config.getoption("--strategy")
    if kind != "class":
        made: Callable[..., Any] = module.strategy_for
        monkeypatch.setattr(module, "strategy_for", lambda *given: KINDS[kind](made(*given)))
