"""Programs by a seed: a script for the server, and lines of Python that use `session`, `url` and `see`."""

from __future__ import annotations

import io
import json
import random
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from .server import CODE, Answer
from .ways import AFTER, HEAD, STREAMED, WHOLE

Random = random.Random

PLAINLY = "RetryAdapter()"
INSTALLED = "install(mounted='plain')"
"""The program mounts what it does without ours."""
ALIKE = [PLAINLY] * 4 + [
    "RetryAdapter(max_attempts=1)",
    "RetryAdapter(max_retries=0)",
    "RetryAdapter(max_retries=Retry(3, backoff_factor=0.1))",
    "RetryAdapter(operation_timeout=60)",
    "RetryAdapter(timeout=60)",
    "RetryAdapter(resume=False)",
    "RetryAdapter(listeners=[Listener()])",
    "RetryAdapter(mode='adaptive')",
    "RetryAdapter(quota=None, pacing='off')",
    "RetryAdapter(strategy=SimpleRetryStrategy())",
    "RetryAdapter(telemetry=['log'])",
    "RetryAdapter(enabled=False)",
    "RetryAdapter(classifiers=[ErrorInBodyClassifier(no_error, 'e')])",
    INSTALLED,
    INSTALLED,
]
"""Configurations between which a program that meets no fault sees no difference."""


@dataclass(frozen=True)
class Program:
    """A program for both adapters."""

    area: str
    script: dict[str, tuple[Answer, ...]]
    lines: tuple[str, ...]
    ours: str = PLAINLY
    pool: str = ""
    """Arguments for both adapters."""

    def simpler(self) -> Iterator[Program]:
        """Yield the same with one thing less."""
        for at in range(len(self.lines)):
            yield replace(self, lines=self.lines[:at] + self.lines[at + 1 :])
        unused = [path for path in self.script if not any(path in line for line in self.lines) and path != "/to"]
        for path in unused:
            yield replace(self, script={name: answers for name, answers in self.script.items() if name != path})
        if self.ours in ALIKE and "max_attempts=1" not in self.ours and self.ours != PLAINLY:
            yield replace(self, ours=PLAINLY)
        if self.pool:
            yield replace(self, pool="")
        for path, answers in self.script.items():
            less = [answers[:at] + answers[at + 1 :] for at in range(len(answers)) if len(answers) > 1]
            for at, answer in enumerate(answers if answers[-1].then != "rest" else ()):
                less += [(*answers[:at], simple, *answers[at + 1 :]) for simple in answer.simpler()]
            for new in less:
                yield replace(self, script={**self.script, path: new})


TYPES = (
    "text/plain", "text/plain; charset=utf-8", "text/csv; charset=latin-1", "application/json", "text/event-stream",
)  # fmt: skip
NO = "x-should-retry: false"
SHORT = "Content-Length: 7"
STRONG, WEAK = 'ETag: "v1"', 'ETag: W/"v1"'
OLD = "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT"
HEADERS = (
    STRONG, STRONG, WEAK, OLD, "Date: Tue, 02 Jan 2024 00:00:00 GMT", "Accept-Ranges: bytes", "Accept-Ranges: none",
    "Set-Cookie: a=1", "Set-Cookie: b=2; Path=/; Max-Age=60",
    "Set-Cookie: gone=; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
    'Link: <https://a.example/2>; rel="next"', "X-Twice: 1", "X-Twice: 2", "X-Latin: caf\xe9", "X-Folded: one\r\n two",
    "X-Empty:", "Connection: close", "Connection: keep-alive", "Keep-Alive: timeout=30", "Vary: *", "Age: 5",
    "Retry-After: 0", "Content-Range: bytes 0-9/10", "Content-MD5: x", "Trailer: X-End", "Content-Disposition: inline",
    "RateLimit-Remaining: 50", "X-RateLimit-Remaining: 9", "X-RateLimit-Reset: 9", "Content-Language: de",
)  # fmt: skip


def zipped() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        file.writestr(zipfile.ZipInfo("name.txt"), b"12345" * 20)
    return data.getvalue()


def tarred() -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as file:
        file.addfile(tarfile.TarInfo("name.txt"))
    return data.getvalue()


LARGE = b"0123456789ghijkl" * 1100
BODIES = [
    b"",
    b"x",
    b"abcdefghij",
    b"first line\nsecond, line\r\nthird\rfourth\xc3\xa9\n\nlast",
    json.dumps({"a": [1, 2, "\u00e9"]}).encode(),
    b"ghijklmnop" * 30,
    b"".join(b"line %d\r\n" % number for number in range(400)),
    LARGE,
    bytes(range(256)),
    zipped(),
    tarred(),
    CODE["gzip"](b"packed by the program"),
]


def some(rng: Random, items: tuple[str, ...], most: int) -> tuple[str, ...]:
    return tuple(rng.sample(items, rng.randrange(most + 1)))


def whole(rng: Random, **given: object) -> Answer:
    """Make an answer that no client finds fault with."""
    answer = Answer(
        status=rng.choice([200] * 9 + [201, 203, 404, 400, 410, 418, 300]),
        headers=(*some(rng, HEADERS, 4), *(f"Content-Type: {kind}" for kind in some(rng, TYPES, 1))),
        body=rng.choice(BODIES),
        coding=rng.choice(["", "", "", *CODE]),
        framing=rng.choice(["length", "length", "chunked", "chunked", "close"]),
        chunk=rng.choice([1, 3, 10, 1000, 65536]),
        before=rng.choice([()] * 9 + [(100,), (100, 100)]),
        pieces=rng.choice([1, 1, 1, 2, 3]),
        then=rng.choice(["keep"] * 5 + ["close"]),
    )
    if len(answer.body) > 1000 and rng.random() < 0.8:  # they take long
        answer = replace(answer, body=answer.body[:40])
    if len(answer.body) > 1000 and answer.chunk < 100:
        answer = replace(answer, chunk=1000)
    return replace(answer, **given)  # type: ignore[arg-type]


def broken(rng: Random) -> Answer:
    """Make an answer with something missing or wrong."""
    answer = whole(rng)
    head, body = answer.head_and_body()
    kind = rng.choice(["cut", "cut", "cut", "end", "head", "damaged", "reset", "nothing", "length", "silence"])
    if kind == "cut" and body:
        return replace(answer, cut=rng.randrange(1, len(body) + 1), then=rng.choice(["close", "close", "reset"]))
    if kind == "silence":
        return replace(answer, cut=rng.randrange(1, len(head) + len(body) + 1), then="drain")
    if kind == "end":
        return replace(answer, cut=min(rng.choice([1, 2, 5, 8]), len(body)), then="close")
    if kind == "head":
        return replace(answer, cut=len(body) + rng.randrange(1, len(head)), then="close")
    if kind == "damaged" and answer.coding and answer.entity():
        return replace(answer, damaged=rng.randrange(1, len(answer.entity()) + 1))
    if kind == "length" and answer.framing != "length":
        return replace(answer, headers=(*answer.headers, SHORT))
    return replace(answer, cut=len(head) + len(body), then=rng.choice(["close", "reset"]))


def read(rng: Random, line: str, ways: list[str], answer: Answer | None = None) -> list[str]:
    """A request, what is seen of its head, a way of reading, and what is asked afterwards."""
    way = rng.choice(ways)
    while answer and len(answer.body) > 1000 and re.search(r"[( ][1-9][),]", way):  # would take long
        way = rng.choice(ways)
    return [line, *rng.sample(HEAD, rng.randrange(4)), way, *rng.sample(AFTER, rng.randrange(3))]


def reading(rng: Random) -> Program:
    """Ways of reading, framings, codings, pieces; without retries, faults as well."""
    script, lines = {}, []
    faulty = rng.random() < 0.35
    for path in "abc"[: rng.randrange(1, 4)]:
        stream, method = rng.random() < 0.75, rng.choice(["get"] * 9 + ["post", "head"])
        answer = broken(rng) if faulty and method != "head" and rng.random() < 0.6 else whole(rng)
        script[f"/{path}"] = (answer,)
        limit = 0.25 if answer.then == "drain" else 5
        call = f"r = session.{method}(url + '/{path}'{', stream=True' if stream else ''}, timeout={limit})"
        lines += read(rng, call, STREAMED if stream else WHOLE, answer)
    return Program("reading", script, tuple(lines), "RetryAdapter(max_attempts=1)" if faulty else rng.choice(ALIKE))


DATA = (
    "b'x' * 100", "'text \\u00e9'", "{'a': 'b', 'c': ['d', 'e']}", "[('a', 'b')]", "iter([b'one', b'two'])", "b''",
    "(part for part in [b'one', b'', b'two'])", "[b'one', b'two']", "io.StringIO('text')", "bytearray(b'xyz')",
)  # fmt: skip
UPLOADS = [
    *(f"data={data}" for data in DATA), "json={'a': 1}", "files={'f': ('n.txt', b'data')}", "data=f", "data=f",
    "files={'f': f}", "",
]  # fmt: skip
FILE = "f = io.BytesIO(b'0123456789' * 3); f.seek({}); see(f.tell())"
METHODS = ["GET", "POST", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "PROPFIND", "get"]
MORE = [
    "", "", "", "auth=('u', 'p')", "auth=HTTPDigestAuth('u', 'p')", "allow_redirects=False", "stream=True",
    "params={'q': 'a b'}", "cookies={'c': '1'}", "headers={'X-A': None, 'Accept': 'text/plain'}",
    "headers={'Cookie': 'd=2'}",
    "hooks={'response': hook}", "headers={'Authorization': 'Bearer x'}", "headers={'Idempotency-Key': 'k'}",
    "auth=lambda q: q.headers.update({'X-Sign': q.method}) or q", "proxies={'http': url}",
    "proxies={'http': url.replace('//', '//u:p@')}",
]  # fmt: skip
HOOKS = [
    "hook = lambda r, **k: see('hook', r.status_code, r.raw.tell(), r.raw.closed, sorted(k))",
    "hook = lambda r, **k: see('hook', r.content)",
    "hook = lambda r, **k: see('hook', r.raw.read(4)) or r",
    "hook = lambda r, **k: r.raise_for_status()",
    "hook = [lambda r, **k: see(1), lambda r, **k: see(2, r.text[:9])]",
    "hook = lambda r, **k: r.close()",
    "hook = lambda r, **k: see(len(r.history), r.url, r.request.method, r.elapsed > type(r.elapsed)(0))",
    "hook = lambda r, **k: r.connection.send(session.prepare_request(requests.Request('GET', url + '/to')), **k)",
]
SETUPS = [
    "session = pickle.loads(pickle.dumps(session))",
    "session.auth = ('s', 't')",
    "session.headers['X-S'] = '1'",
    "session.params = {'s': '1'}",
    "session.cookies.set('s', '1')",
    "session.max_redirects = 1",
    "session.hooks['response'].append(lambda r, **k: see('session hook', r.status_code))",
    "session.stream = True",
    "session.verify = False",
    "session.mount(url + '/to', session.get_adapter(url))",
    "session = copy.copy(session)",
    "with_own_requests(session)",
]
CHALLENGES = (
    (401, 'WWW-Authenticate: Digest realm="r", nonce="n", qop="auth"'), (401, 'WWW-Authenticate: Basic realm="r"'),
    (407, 'Proxy-Authenticate: Basic realm="r"'),
)  # fmt: skip
TUNNEL = "a.example:443"
BY_HAND = [
    "r = session.send(r.next, timeout=5) if r.next else r",
    "see([q.status_code for q in session.resolve_redirects(r, r.request, timeout=5)])",
    "r = session.send(r.request, timeout=5)",
    "r = session.send(r.request.copy(), timeout=5, stream=True)",
]
"""What a program sends itself, after an answer."""
TARGETS = [
    "/to", "/to#part", "?to", "/b", "//127.0.0.1:PORT/to", "http://127.0.0.1:PORT/to", "/a", "/to?x=%7e y",
    "http://localhost:PORT/to", "",
]  # fmt: skip


def told(answer: Answer) -> Answer:
    """Say that the connection ends: the next request is sent before that is seen."""
    return answer if answer.then == "keep" else replace(answer, headers=(*answer.headers, "Connection: close"))


def redirect(rng: Random) -> Answer:
    """Send on to somewhere, and stop there when asked once more."""
    location = f"Location: {rng.choice(TARGETS)}"
    return whole(rng, status=rng.choice([301, 302, 303, 307, 308]), headers=(*some(rng, HEADERS, 2), location))


def challenge(rng: Random) -> Answer:
    """Ask who it is."""
    status, header = rng.choice(CHALLENGES)
    return whole(rng, status=status, headers=(header,))


def sessions(rng: Random) -> Program:
    """Methods, bodies, redirects, challenges, hooks, cookies, pickles."""
    script: dict[str, tuple[Answer, ...]] = {"/to": (whole(rng),), "/b": (redirect(rng), whole(rng))}
    lines = [*rng.sample(SETUPS, rng.choice([0, 0, 1, 2]))]
    for path in "ac"[: rng.randrange(1, 3)]:
        method, upload = rng.choice(METHODS), rng.choice(UPLOADS)
        first = rng.choice([whole, redirect, redirect, challenge])
        script[f"/{path}"] = (first(rng), whole(rng))
        more = [word for word in {rng.choice(MORE), rng.choice(MORE)} if word]
        lines += [rng.choice(HOOKS)] if any("hook" in word for word in more) else []
        lines += [FILE.format(rng.choice([0, 0, 3, 20]))] if "f" in upload.split("=")[-1] or "'f': f}" in upload else []
        words = [repr(method), f"url + '/{path}'", *filter(None, [upload]), *sorted(more), "timeout=5"]
        if len({word.split("=")[0] for word in words}) < len(words) or any(", headers" in w for w in words):
            words = [words[0], words[1], *filter(None, [upload]), "timeout=5"]
        lines += read(rng, f"r = session.request({', '.join(words)})", WHOLE)
        lines += read(rng, rng.choice(BY_HAND), WHOLE) if rng.random() < 0.2 else []
        lines += ["see(f.tell(), f.closed)"] if any(line.startswith("f =") for line in lines) else []
    if rng.random() < 0.05:
        script[TUNNEL] = (whole(rng, status=rng.choice([400, 403, 407]), framing="length"),)
        lines += read(rng, f"r = session.get('https://{TUNNEL}/', proxies={{'https': url}}, timeout=5)", WHOLE)
    script = {path: tuple(map(told, answers)) for path, answers in script.items()}
    return Program("sessions", script, tuple(lines), rng.choice(ALIKE))


LONG = [
    "data=b'x' * {}",
    "data=io.BytesIO(b'x' * {})",
    "data=(b'x' * 1000 for _ in range({} // 1000))",
    "files={{'f': b'x' * {}}}",
]


def uploads(rng: Random) -> Program:
    """Answers that come before the upload has been read."""
    script, lines = {}, []
    for path in "ab"[: rng.randrange(1, 3)]:
        size = rng.choice([10, 10, 5000, 200_000, 1_000_000])
        status = rng.choice([200, 413, 401, 403, 404, 302])
        headers = ("Location: /to",) if status == 302 else some(rng, (STRONG, "Set-Cookie: a=1"), 2)
        then = rng.choice(["drain", "drain", "keep", "close", "reset"])
        reads = None if then == "keep" else rng.choice([0, 3])
        headers += ("Connection: close",) if then == "drain" or status == 302 or rng.random() < 0.5 else ()
        script[f"/{path}"] = (whole(rng, status=status, headers=headers, reads=reads, then=then, framing="length"),)
        method, upload = rng.choice(["post", "put", "patch"]), rng.choice(LONG).format(size)
        lines += read(rng, f"r = session.{method}(url + '/{path}', {upload}, timeout=5)", WHOLE)
    script["/to"] = (whole(rng),)
    lines += ["r = session.get(url + '/to', timeout=5); see(r.status_code, r.content)"]
    return Program("uploads", script, tuple(lines), rng.choice(ALIKE))


LEAVE = [
    "r = None", "rs.append(r)", "r.close()", "r.content", "r.raw.read()", "r.raw.read(3)", "list(r.iter_content(9))",
    "with r: pass", "r.raw.drain_conn()", "r.raw.release_conn()", "shutil.copyfileobj(r.raw, io.BytesIO())",
    "rs.append(r.iter_content(2)); see(next(rs[-1]))", "see(rs.pop(0).content if rs else None)",
    "rs.clear()", "session.close()",
]  # fmt: skip


def pools(rng: Random) -> Program:
    """Connections kept, closed and left open; places of the pool."""
    script = {f"/{path}": tuple(whole(rng) for _ in range(rng.randrange(1, 3))) for path in "abc"}
    script = {
        path: tuple(replace(a, then=rng.choice(["keep", "keep", "close"])) for a in answers)
        for path, answers in script.items()
    }
    lines = ["rs = []"]
    for _ in range(rng.randrange(2, 6)):
        stream = rng.random() < 0.7
        lines.append(f"r = session.get(url + '/{rng.choice('abc')}'{', stream=True' if stream else ''}, timeout=5)")
        lines += rng.sample(LEAVE, rng.randrange(1, 3))
        lines += ["see(places())"] if rng.random() < 0.5 else []
    pool = rng.choice(["", "", "pool_maxsize=1", "pool_maxsize=2", "pool_connections=1, pool_maxsize=3"])
    return Program("pools", script, tuple(lines), rng.choice(ALIKE), pool)


THREE = "RetryAdapter(max_attempts=3{})"
RETRYING = [
    PLAINLY, PLAINLY, THREE.format(""), THREE.format(", mode='adaptive'"), THREE.format(", operation_timeout=60"),
    THREE.format(", listeners=[Listener()]"), THREE.format(", resume=False"), THREE.format(", quota=None"),
    "RetryAdapter(max_attempts=1)", "RetryAdapter(max_attempts=2)", "RetryAdapter(max_retries=2)",
]  # fmt: skip
FAILING = [408, 425, 429, 500, 502, 503, 504, 520, 529]
HINTS = [(), (), (), *((h,) for h in ("Retry-After: 0", "Retry-After: 2", "Retry-After: 300", NO, "Set-Cookie: f=1"))]
SENT = [
    ", data=b'xyz'", ", data=f", ", data=iter([b'one', b'two'])", ", data={'a': 'b'}",
    ", data=b'x', headers={'Idempotency-Key': 'k'}",
]  # fmt: skip


def faults(rng: Random) -> Program:
    """One call that meets faults, between two that meet none; held against the contract (`rules.py`)."""
    method, stream = rng.choice(["GET", "GET", "GET", "PUT", "POST", "DELETE"]), rng.random() < 0.4
    failed: list[Answer] = []
    for _ in range(rng.randrange(1, 4)):
        if rng.random() < 0.5:
            headers = rng.choice(HINTS)
            failed.append(
                told(whole(rng, status=rng.choice(FAILING), headers=headers, then=rng.choice(["keep", "close"])))
            )
        elif rng.random() < 0.5 or not stream:
            failed.append(replace(whole(rng, status=200), cut=10**6, then=rng.choice(["close", "reset"])))
        else:
            framing, body = rng.choice([("length", BODIES[5]), ("length", LARGE), ("chunked", BODIES[5])])
            answer = Answer(200, rng.choice([(STRONG,), (STRONG,), (WEAK,), ()]), body, framing=framing, chunk=100)
            failed.append(replace(answer, cut=rng.randrange(1, len(body)), then=rng.choice(["close", "reset"])))
            break
    last = whole(rng, headers=some(rng, HEADERS[7:15], 2))
    if failed[-1].cut < 10**6 and failed[-1].cut:
        last = replace(failed[-1], cut=0, then="rest", framing="length")
    data = "" if method in ("GET", "DELETE") else rng.choice(SENT)
    call = f"r = session.request({method!r}, url + '/b'{data}{', stream=True' if stream else ''}, timeout=5)"
    lines = ["r = session.get(url + '/a', timeout=5); see(r.content)"] if rng.random() < 0.6 else []
    lines += [FILE.format(rng.choice([0, 3]))] if "=f" in data else []
    lines += [*read(rng, call, STREAMED if stream else WHOLE, failed[-1]), *(["see(f.tell())"] if "=f" in data else [])]
    lines += ["see(session.cookies.items())", "r = session.get(url + '/c', timeout=5); see(r.status_code, r.content)"]
    script = {"/a": (whole(rng),), "/b": (*failed, last), "/c": (whole(rng, framing="length"),)}
    return Program("faults", script, tuple(lines), rng.choice(RETRYING))


AREAS: dict[str, Callable[[Random], Program]] = {
    area.__name__: area for area in (reading, sessions, uploads, pools, faults)
}


def program(area: str, seed: int, number: int) -> Program:
    """Make the program of a number, always the same."""
    return AREAS[area](random.Random(f"{area} {seed} {number}"))
