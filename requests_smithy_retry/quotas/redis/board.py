"""The board on Redis: a channel on which the processes tell each other of closed gates.

One thread of each process listens, from its first request on; no request waits for it. A notice says for how many
seconds a gate is closed, since the machines' clocks differ. Nothing is kept on the server: a process that begins to
listen asks on the channel, and who has closed a gate says so again.
"""

from __future__ import annotations

import threading
import weakref
from contextlib import closing, suppress
from typing import Any

from ...forksafe import renew_lock_after_fork
from ...pacing.gate import Notice, Notices
from ..shared import logger
from .link import RedisLink, reason_of

ASK = "?"
SILENCE = 5.0
"""Seconds without a message after which the server is asked whether it is there; after as many again it is not."""
LONGEST = 86_400.0
"""The most seconds that a notice may say."""


class Listener:
    """The part of a board that its thread holds."""

    def __init__(self, link: RedisLink) -> None:
        self.link = link
        self.channel: str = f"{link.settings.prefix}:gates"
        self.renew_lock()
        renew_lock_after_fork(self)

    def renew_lock(self) -> None:
        """Begin anew in a forked child, with a thread and a connection of its own."""
        self.notices: Notices = Notices()
        self.own: Notices = Notices()
        """The gates that this process has closed."""
        self.thread: threading.Thread | None = None
        self._closed = threading.Event()
        self._is_logged = False

    def start(self) -> None:
        self.thread = threading.Thread(target=self._run, name="requests-smithy-retry-gates", daemon=True)
        with suppress(RuntimeError):  # at exit there are no new threads
            self.thread.start()

    def close(self) -> None:
        """Have the thread end, because nobody reads the board."""
        self._closed.set()

    def tell(self, scope: str, notice: Notice) -> None:
        """Tell the others of a gate that this process has closed."""
        seconds = notice.until - self.link.clock.now()
        self.link.publish(scope, self.channel, f"{seconds:.4f}\n{notice.source}\n{scope}")

    def hear(self, text: str) -> None:
        """Take in a message. A malformed one is passed over."""
        now = self.link.clock.now()
        if text == ASK:
            if self.own.are_current(now):
                for scope, notice in tuple(self.own.items()):
                    self.tell(str(scope), notice)
            return
        number, _, rest = text.partition("\n")
        source, _, scope = rest.partition("\n")
        try:
            seconds = float(number)
        except ValueError:
            return
        if 0 < seconds <= LONGEST and scope:
            self.notices.note(scope, Notice(now + seconds, source))

    def _run(self) -> None:
        closed = self._closed
        while not closed.is_set():
            try:
                self._listen(closed)
            except Exception as error:  # whatever it is, this process is on its own until the next try
                if not self._is_logged:
                    self._is_logged = True
                    place, why = self.link.outage.place, reason_of(error)
                    logger.warning("closed gates are not shared with others over %s (%s)", place, why)
            closed.wait(self.link.settings.retry_interval)

    def _listen(self, closed: threading.Event) -> None:
        with closing(self.link.connect()) as client, closing(client.pubsub()) as channel:
            channel.subscribe(self.channel)
            is_silent = False
            while not closed.is_set():
                message = channel.get_message(timeout=SILENCE)
                if message is not None:
                    self._take(message["type"], message["data"])
                elif is_silent:
                    raise TimeoutError
                else:
                    channel.ping()
                is_silent = message is None

    def _take(self, kind: str, data: Any) -> None:
        if kind == "subscribe":
            self._is_logged = False
            self.link.publish("", self.channel, ASK)
        elif kind == "message":
            self.hear(data.decode(errors="replace") if isinstance(data, bytes) else str(data))


class RedisBoard:
    """A reader's board."""

    def __init__(self, link: RedisLink) -> None:
        self._listener = listener = Listener(link)
        weakref.finalize(self, listener.close).atexit = False

    def has_news(self) -> bool:
        listener = self._listener
        if listener.thread is None:
            listener.start()
        return len(listener.notices) > 0 and listener.notices.are_current(listener.link.clock.now())

    def closed(self, scope: str) -> Notice | None:
        return self._listener.notices.get(scope)

    def post(self, scope: str, seconds: float, source: str) -> None:
        listener = self._listener
        notice = Notice(listener.link.clock.now() + seconds, source)
        listener.own.note(scope, notice)
        listener.tell(scope, notice)
