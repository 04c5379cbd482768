"""Send permits (contract 9): if a strategy has ``send_permit``, each attempt waits for one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..clock import Clock, rest_until_permitted
from ..config.retry_config import RetryConfig
from ..core.port import Feature

if TYPE_CHECKING:
    from requests import Response

    from ..core.call import Call
    from ..core.port import Send


class Permits(Feature):
    """The seam: the strategy is asked before each attempt, after the delay."""

    def around(self, send: Send, call: Call) -> Response:
        strategy: Any = call.strategy
        if call.token is not None:
            call.clock.begin("a rate limit")
            waited = rest_until_permitted(strategy.send_permit, strategy, call.token, call.deadline, call.clock)
            if waited:
                call.before = call.before._replace(permit_wait=call.before.permit_wait + waited)
        return send(call)


def feature(config: RetryConfig, clock: Clock) -> Permits:
    return Permits()
