"""``requests-smithy-retry try``: one real operation, told as it happens."""

from __future__ import annotations

import enum
from typing import Any

import click
import requests
import requests.exceptions

from ..actions import NoActionIndicated
from ..config import RetryConfig
from ..errors import RetryConfigError
from ..events import AfterAttempt, RetryScheduled
from ..history import RetryHistory, retry_history, said
from ..listeners import RetryListener
from ..log import QUIET_ENDINGS
from ..mount import mount
from ..stop_reason import StopReason
from .config_command import option_of
from .explain_command import header_of


class Exit(enum.IntEnum):
    """The exit status: how the operation ended."""

    SUCCEEDED = 0
    GAVE_UP = 1
    """A retry was wanted and could not be had."""
    NOT_RETRYABLE = 3
    """It ended with an answer or an exception that no retry would help."""


class Teller(RetryListener):
    """Prints each attempt when it has ended, and each wait when it begins."""

    def after_attempt(self, event: AfterAttempt, /) -> None:
        """Print the attempt."""
        click.echo(f"attempt {event.number}: {event.record.ending} in {event.duration:.3f} s")
        for vote in event.record.votes:
            if not isinstance(vote.action, NoActionIndicated):
                click.echo(f"    {vote.classifier}: {said(vote)}")

    def retry_scheduled(self, event: RetryScheduled, /) -> None:
        """Print the wait."""
        paid = "" if event.record.quota_after is None else f"; the quota holds {event.record.quota_after:g} tokens"
        click.echo(f"    retry in {event.delay:.3f} s ({event.delay_source}){paid}")


@click.command("try")
@click.option("--method", default="GET", show_default=True, help="The request's method.")
@click.option("--header", "headers", multiple=True, callback=header_of, help="A header of the request. Repeatable.")
@click.option("--data", help="The request's body.")
@click.argument("url")
@click.argument("options", nargs=-1, metavar="[OPTION=VALUE]...")
@click.pass_context
def try_url(
    context: click.Context,
    method: str,
    headers: tuple[tuple[str, str], ...],
    data: str | None,
    url: str,
    options: tuple[str, ...],
) -> None:
    """Make one real request with the resolved policy and tell what happens.

    Each OPTION=VALUE stands for an option given in code, for instance max_attempts=5. Redirects are not followed. The
    exit status is 0 if it succeeded, 1 if it gave up, 3 if it ended with something that no retry would help, 2 for bad
    usage.
    """
    try:
        config = RetryConfig.from_environment(**dict(map(option_of, options))).replace(listeners=(Teller(),))
    except RetryConfigError as refusal:
        raise click.UsageError(str(refusal)) from None
    with requests.Session() as session:
        mount(session, config=config)
        try:
            outcome: Any = session.request(method, url, headers=dict(headers), data=data, allow_redirects=False)
        except (requests.exceptions.RequestException, ValueError) as error:  # of http.client: a method with a blank
            outcome = error
    history = retry_history(outcome)
    click.echo(_ending(outcome) if history is None else history.sentence)
    context.exit(exit_of(history, outcome))


def exit_of(history: RetryHistory | None, outcome: Any) -> Exit:
    """The exit status for what came of the operation; where retries are off, the outcome itself decides."""
    if history is None:
        return Exit.SUCCEEDED if getattr(outcome, "ok", False) else Exit.NOT_RETRYABLE
    if history.stop_reason is StopReason.SUCCESS:
        return Exit.SUCCEEDED
    return Exit.NOT_RETRYABLE if history.stop_reason in QUIET_ENDINGS else Exit.GAVE_UP


def _ending(outcome: Any) -> str:
    if isinstance(outcome, requests.Response):
        return f"ended with {outcome.status_code}; retries are switched off"
    return f"ended with {type(outcome).__name__}; nothing was sent, or retries are switched off"
