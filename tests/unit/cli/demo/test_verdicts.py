"""What an operation came to."""

import pytest

from requests_smithy_retry.cli.demo.plan import digest, make_plan
from requests_smithy_retry.cli.demo.verdicts import EMPTY, Told, Verdict, judge

OPERATION = next(operation for operation in make_plan(1, 15) if operation.fault.name == "upload-503")
WHOLE, SENT, OTHER = digest(OPERATION.download()), digest(OPERATION.upload()), digest(b"other")


@pytest.mark.parametrize(
    ("told", "accepted", "expected"),
    [
        (Told(SENT, 0.1, 200, WHOLE), [SENT], (Verdict.SUCCEEDED, False, "200")),
        (Told(SENT, 0.1, 200, WHOLE), [SENT, SENT], (Verdict.SUCCEEDED, False, "200")),
        (Told(SENT, 0.1, 503, EMPTY), [], (Verdict.FAILED, False, "503")),
        (Told(SENT, 0.1, None, None, "ReadTimeout"), [], (Verdict.FAILED, False, "ReadTimeout")),
        (Told(SENT, 0.1, 200, OTHER), [SENT], (Verdict.WRONG, False, "200")),
        (Told(SENT, 0.1, 200, EMPTY), [SENT], (Verdict.WRONG, True, "200")),
        (Told(SENT, 0.1, 200, WHOLE), [OTHER], (Verdict.WRONG, False, "200")),
        (Told(SENT, 0.1, 200, WHOLE), [EMPTY], (Verdict.WRONG, True, "200")),
        (Told(SENT, 0.1, 200, WHOLE), [SENT, EMPTY], (Verdict.WRONG, True, "200")),
        (Told(SENT, 0.1, None, None, "ConnectionError"), [EMPTY], (Verdict.WRONG, True, "ConnectionError")),
    ],
)
def test_the_verdict_follows_from_what_both_ends_say(told, accepted, expected):
    """Success needs the same hashes at both ends; a wrong body counts even if the client was told of a failure."""
    result = judge(OPERATION, told, accepted, 2)
    assert expected == (result.verdict, result.is_empty, result.detail)
    assert (OPERATION, 2, 0.1) == (result.operation, result.requests, result.seconds)
