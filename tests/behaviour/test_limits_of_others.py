"""The limits of well-known APIs, as `tests/data/announced_limits.json` has them, in five programs each."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timezone
from email.utils import formatdate
from math import ceil
from pathlib import Path
from typing import Any

import pytest
import requests

from requests_smithy_retry.testing import FakeClock, ScriptedAdapter
from tests.support import Reply, prepare, scripted, send
from tests.turns import TurnClock

pytestmark = [pytest.mark.once, pytest.mark.untraced]

TABLE = json.loads((Path(__file__).parents[1] / "data" / "announced_limits.json").read_text(encoding="utf-8"))
ROWS: list[dict[str, Any]] = TABLE["limits"]
FAR = 0.02
"""Seconds that an answer takes."""
THREADS = 16
LONGEST = 120.0
"""Seconds that anybody waits for a limit, by default."""
PATIENCE = 5.0
TELLS_AHEAD = (
    *("GitLab", "Okta", "Zendesk", "SharePoint", "Docker Hub, API", "WHOOP", "TeamDynamix"),
    *("IETF draft", "IETF draft, version 7", "IETF draft, version 6"),
)
"""Those that tell what is left, for a time that anybody waits: nobody is refused."""
TIMES = ("{seconds}", "{epoch", "{date}", "{iso", "{go")
ALL = pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])


class Service:
    """Allows what a row says, and says so; its windows begin at its first request.

    :param more: factors of the limit, by route.
    :param stale: every so many answers come from a cache, and tell of another time.
    """

    def __init__(self, row: dict[str, Any], clock: TurnClock, more: dict[str, int] | None = None, stale: int = 0):
        self.row, self.clock, self.more, self.stale = row, clock, more or {}, stale
        self.began = int(clock.wall())
        self.used: dict[str, float] = defaultdict(float)
        self.heard: dict[str, float] = {}
        self.barred: dict[str, float] = defaultdict(float)
        self.asked: list[tuple[float, str, bool]] = []
        self.kept: Reply | None = None

    def answer(self, request: Any) -> Reply:
        """Answer one request."""
        self.clock.sleep(FAR / 2)
        if self.stale and self.kept is not None and len(self.asked) % self.stale == 1:
            self.asked.append((self.clock.wall(), "cache", True))
            return self.kept
        route = request.path_url
        own = route if self.row.get("per") == "route" else ""
        limit = self.row["limit"] * self.more.get(route, 1)
        is_fine, used, seconds, full = self.count(own, limit)
        self.asked.append((self.clock.wall(), route, is_fine))
        told = dict(self.row["answer"]) if is_fine else {**self.row["answer"], **self.row.get("refusal", {})}
        headers = self.told(told, limit, used, seconds, full, route)
        if is_fine and self.kept is None:
            self.kept = Reply(200, {**self.told(told, limit, limit, 3600.0, full, route), "Age": "900"}, b"stored")
        self.clock.sleep(FAR / 2)
        if self.row["kind"] == "at a time":
            self.used[own] -= 1
        return Reply(200, headers) if is_fine else Reply(self.row["status"], headers, self.row.get("body", "").encode())

    def count(self, own: str, limit: int) -> tuple[bool, int, float, float]:
        """Count a request; return if it is allowed, what is used, seconds until more is, and until all is there."""
        now, window, kind = self.clock.wall(), self.row["window"], self.row["kind"]
        gone = now - self.heard.get(own, now if kind == "bucket" else self.began)
        if kind == "bucket":
            self.used[own] = max(0.0, self.used[own] - gone * limit / window)
            self.heard[own] = now
        elif kind != "at a time" and gone >= (length := 1 if kind == "penalty" else window):
            self.used[own], self.heard[own] = 0, now - gone % length
        if kind == "penalty":
            is_fine = now >= self.barred[own] and self.used[own] < limit
            if not is_fine and now >= self.barred[own]:
                self.barred[own] = now + window
        else:
            is_fine = self.used[own] + 1 <= limit + 1e-9
        self.used[own] += is_fine
        used = ceil(self.used[own] - 1e-9)
        if kind == "bucket":
            missing = max(0.0, self.used[own] + 1 - limit)
            return is_fine, used, missing * window / limit, self.used[own] * window / limit
        left = self.heard.get(own, self.began) + window - now
        return is_fine, used, left, left

    def told(
        self, headers: dict[str, str], limit: int, used: int, seconds: float, full: float, route: str
    ) -> dict[str, str]:
        """Write the headers."""
        now = self.clock.wall()

        def iso(moment: float) -> str:
            return datetime.fromtimestamp(moment, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

        fields = {
            "limit": limit,
            "left": max(0, limit - used),
            "used": used,
            "window": self.row["window"],
            "route": route,
            "seconds": max(1, ceil(seconds)),
            "milliseconds": ceil(1000 * seconds),
            "exact": f"{seconds:.3f}",
            "epoch": ceil(now + seconds),
            "epoch exact": f"{now + seconds:.3f}",
            "epoch full": ceil(now + full),
            "epoch hour": int(now) + 2900,
            "go full": f"{full:.3f}s",
            "date": formatdate(ceil(now + seconds), usegmt=True),
            "iso": iso(ceil(now + seconds)),
            "iso minute": iso(ceil(now + seconds))[:-4] + "Z",
            "iso full": iso(ceil(now + full)),
        }
        return {
            "Date": formatdate(int(now), usegmt=True),
            **{name: text.format(**fields) for name, text in headers.items()},
        }


class World:
    """A program, a service and a clock.

    :param options: of the adapter; ``enabled=False`` has plain requests.
    """

    def __init__(self, row: dict[str, Any], more: dict[str, int] | None = None, stale: int = 0, **options: Any) -> None:
        self.clock = TurnClock(wall=1_700_000_000.4)
        self.service = Service(row, self.clock, more, stale)
        self.adapter = ScriptedAdapter(
            script=[self.service.answer] * 20_000, clock=self.clock, jitter="none", **options
        )
        self.took: list[float] = []
        self.fine = 0

    def ask(self, count: int, routes: tuple[str, ...] = ("/a",)) -> None:
        """Ask so often in a row."""
        for number in range(count):
            began = self.clock.now()
            url = f"https://api.example.com{routes[number % len(routes)]}"
            try:
                answer = self.adapter.send(prepare(url=url, headers={"Authorization": "Bearer mine"}))
                self.fine += answer.ok
            except requests.exceptions.ConnectTimeout:
                pass  # not sent: the limit opens too late
            self.took.append(self.clock.now() - began)

    def run(self, count: int, threads: int = 1, routes: tuple[str, ...] = ("/a",)) -> World:
        """Ask so often, from so many threads."""
        shares = [count // threads + (number < count % threads) for number in range(threads)]
        self.clock.run([lambda share=share: self.ask(share, routes) for share in shares])
        return self

    @property
    def lasted(self) -> float:
        return round(self.clock.now(), 3)

    @property
    def refused(self) -> int:
        return sum(not is_fine for _, _, is_fine in self.service.asked)


def both(row: dict[str, Any], program: Callable[[World], World], **world: Any) -> tuple[World, World]:
    """Run a program plain, and with ours."""
    return program(World(row, **world, enabled=False)), program(World(row, **world))


@ALL
@pytest.mark.parametrize(
    ("threads", "routes", "world"),
    [
        pytest.param(1, ("/a",), {}, id="one after another"),
        pytest.param(THREADS, ("/a",), {}, id="from sixteen threads"),
        pytest.param(1, ("/a", "/b"), {"more": {"/b": 4}}, id="beside a route of four times the limit"),
        pytest.param(1, ("/a",), {"stale": 3}, id="a third of the answers are a cache's, of a limit used up"),
    ],
)
def test_a_batch_within_the_limit_takes_no_longer_than_plain(
    row: dict[str, Any], threads: int, routes: tuple[str, ...], world: dict[str, Any]
) -> None:
    """As many requests as the limit has are sent at once: as long as something is left, nobody waits."""
    plain, ours = both(row, lambda program: program.run(row["limit"], threads, routes), **world)
    assert (plain.lasted, plain.fine, plain.refused) == (ours.lasted, ours.fine, ours.refused)
    assert row["limit"] == ours.fine or len(routes) > 1


@ALL
@pytest.mark.parametrize("threads", [1, THREADS])
def test_half_as_much_again(row: dict[str, Any], threads: int) -> None:
    """Where the server tells of its limit, or how long to wait, all ends well; nobody waits longer, or goes early.

    Where more comes back bit by bit, sixteen threads succeed as often as plain, or more. Where nothing is told, or
    the wait is longer than anybody waits, it is as plain.
    """
    count = row["limit"] * 3 // 2
    plain, ours = both(row, lambda world: world.run(count, threads))
    assert ours.fine >= plain.fine
    window, kind, told = row["window"], row["kind"], {**row["answer"], **row.get("refusal", {})}
    names, texts = map(str.lower, told), " ".join(told.values())
    tells = "unread" not in row and ("retry-after" in names or any(time in texts for time in TIMES))
    wait = window / row["limit"] if kind == "bucket" else window
    # A 503 counts as an outage: of many threads two wait for it, the others for no longer than their patience.
    if wait <= LONGEST and tells and ((kind == "window" and row["status"] != 503) or threads == 1):
        assert count == ours.fine
        most = count - row["limit"] if kind == "bucket" else threads
        assert ours.refused <= (0 if row["name"] in TELLS_AHEAD else most)
    if wait > LONGEST and tells:
        assert plain.lasted == ours.lasted
    assert max(ours.took) <= min(LONGEST, window) + PATIENCE + 1


@ALL
def test_another_route_of_its_own_limit_goes_at_once(row: dict[str, Any]) -> None:
    """Once the limit of one route is used up, the first request to another one goes, as plain."""

    def program(world: World) -> World:
        return world.run(row["limit"]).run(1, routes=("/b",))

    plain, ours = both({**row, "per": "route"}, program)
    assert (plain.lasted, plain.fine, plain.refused) == (ours.lasted, ours.fine, ours.refused)


@ALL
def test_a_403_for_lack_of_permission_is_final(row: dict[str, Any]) -> None:
    """With the headers of each answer within the limit; only lemlist's `Retry-After: 2` makes it a rate limit."""
    service = Service(row, TurnClock(wall=1_700_000_000.4))
    headers = service.told(row["answer"], row["limit"], 1, 1.0, 1.0, "/a")
    adapter = scripted(Reply(403, headers, b"You may not see this."), 200, clock=FakeClock())
    assert (200 if row["name"] == "lemlist" else 403) == send(adapter).status_code


@ALL
def test_its_form_was_checked(row: dict[str, Any]) -> None:
    """Each row has a page of its vendor or a public thread, and says how it was checked; no field is left over."""
    assert row["source"].startswith("https://")
    assert row["verified"]
    service = Service(row, TurnClock(wall=1_700_000_000.4))
    service.told({**row["answer"], **row.get("refusal", {})}, row["limit"], 1, 1.0, 1.0, "/a")


def test_a_given_patience_bounds_what_a_server_asks_for() -> None:
    """Sixteen threads that are refused for a minute: with a patience none of them waits longer than that."""
    (row,) = (row for row in ROWS if row["name"] == "Slack")
    world = World(row, patience=5).run(75, THREADS)
    assert (50, True) == (world.fine, max(world.took) < 1)
