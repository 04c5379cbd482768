"""How often a client begins an operation, as the payoff quota counts it (issue's formula: n, w, at)."""

from __future__ import annotations

from math import exp

import pytest

from requests_smithy_retry.payoff_rate import TrafficRate


def test_an_operation_before_the_last_one_counts_less_and_moves_no_clock():
    """Threads book out of order: the rate is as of the last operation, whoever is booked last."""
    traffic = TrafficRate(30.0, 10.0, 0.0)
    traffic.count((10.0,))
    late = traffic.count((4.0,))[-1]
    weight = 30.0 * (1 - exp(-10 / 30))
    assert 10.0 == traffic.at
    assert late == pytest.approx((1 + exp(-6 / 30)) / max(weight, 10.0))
