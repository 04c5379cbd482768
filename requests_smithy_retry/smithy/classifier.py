"""What a modelled error means for a retry (contract 3.4, 4.2): ``@retryable`` is a yes, its absence no
opinion.

Pure: a code and a status in, a verdict out. Where the code comes from (header, JSON, XML) is decided
elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..actions import ErrorKind, RetryAction, RetryReason
from ..aws_error_codes import bare_error_code
from .modeled_errors import ModeledError

_TRANSIENT = RetryAction.retry_indicated(RetryReason(ErrorKind.TRANSIENT, not_applied=True))
_THROTTLING = RetryAction.retry_indicated(RetryReason(ErrorKind.THROTTLING, not_applied=True))


def verdict_for(
    errors: Mapping[str, tuple[ModeledError, ...]], error_code: str | None, status: int | None
) -> RetryAction:
    """The verdict of a model on an error that came with this code.

    A status alone says nothing: without a code there is no opinion. It is only used where several modelled
    errors share a code: those with another ``@httpError`` are left out. If the rest disagree, there is no
    opinion.

    :param errors: by name or code, each with all errors that share it; for those of a loaded model use
        :meth:`.SmithyModel.verdict_for`.
    :param error_code: the code or shape name in the response, decorated or not, or None where it has none.
    :param status: the status of the response, or None.
    """
    if error_code is None:
        return RetryAction.no_action_indicated()
    named = errors.get(bare_error_code(error_code), ())
    namesakes = tuple(error for error in named if error.http_status == status) or named
    opinions = {(error.retryable, error.throttling) for error in namesakes}
    if opinions == {(True, False)}:
        return _TRANSIENT
    if opinions == {(True, True)}:
        return _THROTTLING
    return RetryAction.no_action_indicated()
