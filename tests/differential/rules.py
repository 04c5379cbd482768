"""What differs on purpose, each by name and with its section of the contract; and what retries may do."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from .compare import PLAIN, Player, Seen, differences
from .programs import FAILING, NO, SHORT, Program
from .server import Answer


class Difference(NamedTuple):
    """One thing that differs: where, and what both saw."""

    where: str
    plain: Any
    ours: Any

    @property
    def line(self) -> int | None:
        """The number of the line that saw it."""
        said = self.ours or self.plain
        return said[0] if self.where == "said" and isinstance(said[0], int) else None


@dataclass(frozen=True)
class Rule:
    """A difference that a section of the contract wants."""

    name: str
    section: str
    holds: Callable[[Program, Difference], bool]
    entails: tuple[str, ...] = ()
    """What else may differ in its wake."""


def answer_to(program: Program, difference: Difference) -> Answer:
    """Return the first answer to the call whose response a line is about."""
    line = "" if difference.line is None else program.lines[call_of(program, difference.line)]
    path = re.search(r"url \+ '(/\w+)'", line)
    return program.script[path[1]][0] if path and path[1] in program.script else Answer()


def text_of(difference: Difference, side: str = "ours") -> str:
    """Return the class and the text of an exception, or nothing."""
    said = getattr(difference, side)
    return f"{said[2]}: {said[3]}" if isinstance(said, tuple) and said[1:2] == ("raises",) else ""


def head_is_cut(program: Program, difference: Difference) -> bool:
    """The head has no blank line; plain takes what came for an answer."""
    answer = answer_to(program, difference)
    return answer.cut > len(answer.head_and_body()[1]) and "within the head" in text_of(difference)


def coding_is_cut(program: Program, difference: Difference) -> bool:
    """A coded body without its end, or with another: plain returns what it could decode."""
    answer = answer_to(program, difference)
    is_bad = answer.coding and (answer.cut or answer.damaged or SHORT in answer.headers)
    return bool(is_bad) and "ContentDecodingError" in text_of(difference) and not text_of(difference, "plain")


def body_is_cut(program: Program, difference: Difference) -> bool:
    """A body without its last byte or chunk is cut, to `readinto` as well, and with urllib3 1.26.

    urllib3's error for a cut body is in a cycle of frames, so its adapter is left until garbage is collected.
    """
    answer, name = answer_to(program, difference), "IncompleteRead"
    is_cut = answer.cut > 0 or SHORT in answer.headers
    return is_cut and name in text_of(difference) and name not in text_of(difference, "plain")


def chunks_are_read_in_two_ways(program: Program, difference: Difference) -> bool:
    """Plain takes data for the length of a chunk, or loses it, where two readers share a whole chunked body."""
    line = program.lines[difference.line or 0]
    answers = [answer for answers in program.script.values() for answer in answers]
    is_whole = any(answer.framing == "chunked" and not answer.cut and not answer.damaged for answer in answers)
    is_shared = not text_of(difference) and ("next" in line or "rs.pop(0)" in line)
    return is_whole and (is_shared or "InvalidChunk" in text_of(difference, "plain"))


def says_why_not_continued(program: Program, difference: Difference) -> bool:
    """The text of a stream's error says where it broke off in the body; plain counts the bytes of a chunk."""
    plain, ours = (re.sub(r"IncompleteRead\([^)]*\)", "", text_of(difference, side)) for side in ("plain", "ours"))
    told = r"(: TimeoutError\('[\w ]*'\))? at byte \d+( of \w+)?; not continued: [^'\"]*"
    is_short = "Response ended prematurely" in plain and re.search(told, ours) is not None
    return bool(plain) and (is_short or re.sub(told, "", ours) == plain.replace("timed out.", "timed out"))


def bytes_before_a_break_are_counted(program: Program, difference: Difference) -> bool:
    """What came before a reset is read, and counted by `tell` and `length_remaining`; plain loses it."""
    if difference.line is None or None in difference:
        return False
    line, plain, ours = program.lines[difference.line], difference.plain[1:], difference.ours[1:]
    breaks = any(answer.then in ("reset", "drain") for answers in program.script.values() for answer in answers)
    is_told = line.endswith("r.raw.tell())") and plain[:-1] == ours[:-1]
    return breaks and (is_told or (line.startswith("see(r.raw.length_remaining,") and plain[1:] == ours[1:]))


def bytes_before_a_break_are_read(program: Program, difference: Difference) -> bool:
    """Who reads a part gets what came before a reset or a silence, so it may have enough, or fail to decode it.

    Plain loses it.
    """
    broken = re.search("Connection reset|Read timed out", text_of(difference, "plain"))
    if difference.line is None or broken is None:
        return False
    parts = r"next\(|tarfile|zipfile|readline|readinto|peek\(|read1?\(\d"
    is_part = re.search(parts, program.lines[difference.line]) is not None
    then = "reset" if "reset" in broken[0] else "drain"
    breaks = any(answer.then == then and answer.cut for answers in program.script.values() for answer in answers)
    return breaks and is_part and (not text_of(difference) or "failed to decode" in text_of(difference))


def bytes_before_a_break_are_decoded(program: Program, difference: Difference) -> bool:
    """Lines that are read undecoded and then decoded fail by what came, before the rest is waited for."""
    is_mixed = difference.line is not None and re.search(
        r"raw\.readline\(.*readlines\(", program.lines[difference.line]
    )
    is_late = "Read timed out" in text_of(difference, "plain")
    return bool(is_mixed) and is_late and "failed to decode" in text_of(difference)


def interim_answers_of_a_proxy(program: Program, difference: Difference) -> bool:
    """Those that come before its answer to CONNECT are passed over; plain takes the first for the answer."""
    return "Tunnel connection failed: 1" in text_of(difference, "plain")


def error_of_a_proxy_is_in_a_cycle(program: Program, difference: Difference) -> bool:
    """urllib3's error for a refused CONNECT is in a cycle of frames, so what the call has, ours more, is left."""
    refuses = any(path.endswith(":443") and answers[0].status >= 300 for path, answers in program.script.items())
    return difference.where == "left" and refuses and any("proxies=" in line for line in program.lines)


def continued_body_has_other_pieces(program: Program, difference: Difference) -> bool:
    """The same bytes come in other pieces where another answer brings the rest."""
    is_continued = program.area == "faults" and any(answer.then == "rest" for answer in program.script["/b"])
    if not is_continued or None in difference or text_of(difference) or text_of(difference, "plain"):
        return False
    sides = [re.sub(r"', b'|\", b\"", "", " ".join(said[1:])) for said in difference[1:]]
    return sides[0] == sides[1]


EVERYTHING = ("requests", "connections", "places", "cookies", "warned", "left")


def one_shot_is_not_sent_again(program: Program, difference: Difference) -> bool:
    """Plain sends nothing in place of a generator that was read."""
    return "UnrewindableBodyError" in text_of(difference)


def call_is_saved(program: Program, difference: Difference) -> bool:
    """A retry saves a call for which plain has an error."""
    is_lost = re.match(r"requests\.exceptions\.(Connection|Proxy)Error", text_of(difference, "plain"))
    return is_lost is not None and not text_of(difference)


def failed_connection_is_closed(program: Program, difference: Difference) -> bool:
    """After a body that cannot be decoded, the next request goes over another connection, and no place is lost."""
    is_damaged = any(answer.damaged or answer.cut for answers in program.script.values() for answer in answers)
    has_more = difference.where == "places" and difference.ours > difference.plain
    return is_damaged and (has_more or differs_by_connection(difference))


def differs_by_connection(difference: Difference) -> bool:
    """The same request goes over another connection."""
    sides = [side[1:] for side in difference[1:] if difference.where == "requests" and side]
    return len(sides) == 2 and sides[0] == sides[1]


def connection_was_given_back_unread(program: Program, difference: Difference) -> bool:
    """It is closed, also where plain has all of a short body in its buffer, and uses it again."""
    is_given_back = any("release_conn" in line for line in program.lines)
    return is_given_back and (differs_by_connection(difference) or difference.where == "connections")


def plain_waits_on_what_was_given_back(program: Program, difference: Difference) -> bool:
    """Plain sends its next request over a connection that was given back unread, and takes the rest for an answer."""
    given_back = next((at for at, line in enumerate(program.lines) if "release_conn" in line), None)
    if given_back is None or difference.line is None or call_of(program, difference.line) < given_back:
        return False
    plain, ours = text_of(difference, "plain"), text_of(difference)
    return "BadStatusLine" in plain or ("Read timed out" in plain and not ours)


def retries_are_in_raw(program: Program, difference: Difference) -> bool:
    """The history of `raw.retries` has rows, and `raw.geturl` goes by them, as with urllib3's own retries."""
    line = "" if difference.line is None else program.lines[difference.line]
    return program.area in ("faults", "uploads") and ("raw.retries.history" in line or "raw.geturl()" in line)


def coded_body_is_read_before_hooks(program: Program, difference: Difference) -> bool:
    """A hook that looks at the connection, or closes it, finds a coded body read.

    Where it takes a part of a redirect's, plain cannot decode the rest, and does not go on; and urllib3's error for
    chunks that a hook took a part of is in a cycle of frames.
    """
    looks = any(re.match(r"hook = .*(raw|close\(\)|connection\.send)", line) for line in program.lines)
    if not looks or not any(answer.coding for answers in program.script.values() for answer in answers):
        return False
    if difference.line is not None:
        return "hooks" in program.lines[call_of(program, difference.line)]
    return difference.where in ("places", "connections") or differs_by_connection(difference)


def answer_that_waited_is_let_go(program: Program, difference: Difference) -> bool:
    """An unread answer that waited in the line, and was the last one all the same, has its body in `content`."""
    if difference.line is None or program.area != "faults":
        return False
    call = program.lines[call_of(program, difference.line)]
    is_unread = "stream=True" in call and "/b" in call and "raw" in program.lines[difference.line]
    return is_unread and any(answer.status in FAILING for answer in program.script["/b"])


RULES = (
    Rule("a body that is gone is not sent empty", "5", one_shot_is_not_sent_again, EVERYTHING),
    Rule("a retry saves a call", "2.6", call_is_saved, EVERYTHING),
    Rule("a continued body comes in other pieces", "14.6", continued_body_has_other_pieces),
    Rule("a failed attempt's connection is closed", "2.7", failed_connection_is_closed, ("connections", "places")),
    Rule("chunks can be read in two ways", "14.4", chunks_are_read_in_two_ways, ("places", "connections", "left")),
    Rule(
        "a coded body is read before hooks",
        "2.3",
        coded_body_is_read_before_hooks,
        ("places", "connections", "requests", "left"),
    ),
    Rule("an answer that waited is let go", "2.7", answer_that_waited_is_let_go),
    Rule("given back unread, then closed", "14.1", connection_was_given_back_unread, ("connections", "places")),
    Rule("given back unread, then waited on", "14.1", plain_waits_on_what_was_given_back, EVERYTHING),
    Rule("rows for retries", "11.2", retries_are_in_raw),
    Rule("a head without its end is an error", "14.4", head_is_cut, EVERYTHING),
    Rule("a coding without its end is an error", "14.4", coding_is_cut, ("places", "connections")),
    Rule("a body that is cut is an error", "14.4", body_is_cut, ("places", "connections", "left")),
    Rule("bytes before a break are counted", "14.6", bytes_before_a_break_are_counted),
    Rule("bytes before a break are decoded", "14.6", bytes_before_a_break_are_decoded),
    Rule("bytes before a break are read", "14.6", bytes_before_a_break_are_read, ("places", "connections")),
    Rule("urllib3's error of a proxy is in a cycle", "2.8", error_of_a_proxy_is_in_a_cycle),
    Rule("interim answers of a proxy are passed over", "14.4", interim_answers_of_a_proxy),
    Rule("a stream's error says where it broke off", "14.6", says_why_not_continued),
)


def call_of(program: Program, line: int) -> int:
    """Return the line of the call whose response a line is about."""
    return max((at for at in range(line + 1) if re.match("r = ", program.lines[at])), default=0)


def differs_by_cookies(difference: Difference) -> bool:
    """Both sides are the same but for the cookies that a request had, which an earlier answer set."""
    sides = [re.sub(r", \('Cookie', '[^']*'\)", "", str(side)) for side in difference[1:]]
    return sides[0] == sides[1]


def unnamed(program: Program, found: list[Difference], count: Callable[[str], None]) -> list[Difference]:
    """Leave out what a rule names, and what the same call shows behind it."""
    left: list[Difference] = []
    explained: set[int] = set()
    entailed: set[str] = set()
    for difference in found:
        call = None if difference.line is None else call_of(program, difference.line)
        line = "" if difference.line is None else program.lines[difference.line]
        rule = next((rule for rule in RULES if rule.holds(program, difference)), None)
        if rule is not None:
            count(rule.name)
            entailed.update(rule.entails)
            explained.update(() if call is None else (call,))
        elif not (
            call in explained
            or difference.where in entailed
            or ("places()" in line and "places" in entailed)
            or ("cookies" in entailed and differs_by_cookies(difference))
            or ("requests" in entailed and call is not None)  # the server's script is at another place
        ):
            left.append(difference)
    return left


def check(player: Player, program: Program, count: Callable[[str], None]) -> list[Difference]:
    """Run a program with both, and return what differs without a name."""
    ours = player.play(program, program.ours)
    if program.area == "faults":
        return against_contract(player, program, ours, count)
    plain = player.play(program, PLAIN)
    return unnamed(program, [Difference(*found) for found in differences(plain, ours)], count)


IDEMPOTENT = {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"}
SAYS_NO_HARM = {408, 425, 429, 529}


def retried(answer: Answer, line: str) -> bool:
    """Say if the contract sends a call again after an answer, where attempts are left (3.4, 4, 7.3)."""
    method = re.search(r"request\('(\w+)'", line)[1]  # type: ignore[index]
    harmless = method in IDEMPOTENT or "Idempotency-Key" in line or answer.status in SAYS_NO_HARM
    if "data=iter" in line or not harmless:
        return False
    if answer.cut >= 10**6:
        return method in IDEMPOTENT or "Idempotency-Key" in line
    if answer.status not in FAILING:
        return False
    return not any(header in answer.headers for header in (NO, "Retry-After: 300"))


def wanted(program: Program) -> tuple[int, int]:
    """Return the least and the most requests for the faulty path (contract 2.6, 6.2)."""
    line = next(line for line in program.lines if "url + '/b'" in line)
    answers = program.script["/b"]
    number = re.search(r"max_attempts=(\d)|max_retries=(\d)", program.ours)
    most = int(number[1] or int(number[2]) + 1) if number else 9
    needed = next((at for at, answer in enumerate(answers) if not retried(answer, line)), len(answers)) + 1
    least = min(needed, most, 3 if not number else most)
    return least, min(needed, most) if number else needed


def against_contract(player: Player, program: Program, ours: Seen, count: Callable[[str], None]) -> list[Difference]:
    """Hold a run with retries against the contract: the requests, and what plain sees of the last answer (2.8)."""
    if not any("url + '/b'" in line for line in program.lines) or "hangs" in str(ours.said[:1]):
        return []
    heads = [(head, body) for _, head, body in ours.requests if " /b" in head.split("HTTP/")[0]]
    whole = [pair for pair in heads if "nRange: " not in pair[0].replace("\n", "n")]  # shown with or without escapes
    found = []
    least, most = wanted(program)
    if not least <= len(whole) <= most:
        found.append(Difference("requests of /b", f"{least} to {most} by the contract", len(whole)))
    if len(set(whole)) > 1:
        found.append(Difference("requests of /b", "each the same", sorted(set(whole))))
    answers = program.script["/b"]
    at = min(len(whole), len(answers)) - 1
    hints = [float(h[13:]) for answer in answers[:at] for h in answer.headers if h.startswith("Retry-After: ")]
    if sum(ours.slept) + 0.01 < sum(hints):
        found.append(Difference("waits", f"{hints} by the server's hints", ours.slept))
    last = answers[at]
    if len(heads) > len(whole) and answers[-1].then == "rest":  # the body was continued (14.6)
        last = replace(last, cut=0, then="keep")
    plain = player.play(replace(program, script={**program.script, "/b": (last,)}), PLAIN)
    seen = [Difference(*each) for each in differences(plain, ours) if each[0] in ("said", "cookies", "left")]
    return found + unnamed(program, seen, count)
