"""The ways in which programs read a response, each a line of Python about `r`."""

from __future__ import annotations

HEAD = [
    "see(r.status_code, r.reason, r.ok, r.url, r.encoding, list(r.headers.items()))",
    "see([h.status_code for h in r.history], [h.url for h in r.history], r.is_redirect, r.is_permanent_redirect)",
    "see(r.cookies.items(), r.links, r.next and (r.next.method, r.next.url, r.next.body))",
    "see(r.request.method, r.request.url, list(r.request.headers.items()), r.request.body)",
    "see(r.raw.status, r.raw.reason, r.raw.version, list(r.raw.headers.items()), r.raw.closed, r.raw.tell())",
    "see(type(r).__name__, r.elapsed >= type(r.elapsed)(0), r.connection is session.get_adapter(r.url))",
    "see(r.raw.length_remaining, r.raw.chunked, r.raw.decode_content, r.raw.enforce_content_length)",
    "see(r.raw.readable(), r.raw.getheader('Content-Type'), r.raw.geturl(), r.raw.isclosed(), r.raw.getheaders())",
    "see(r.apparent_encoding, bool(r), repr(r), len(r.raw.retries.history))",
    "r.raise_for_status()",
]
"""What a program can see beside the body."""

WHOLE = [
    "see(r.content)",
    "see(r.text)",
    "see(r.json())",
    "see(list(r.iter_content(3)))",
    "see(list(r.iter_lines()))",
    "see(r.raw.read())",
    "see(r.iter_content(2).__next__(), r.content)",
]
"""How a body is read that is there already."""

STREAMED = [
    "see(r.content)",
    "see(r.text)",
    "see(r.json())",
    "see(list(r.iter_content(1)))",
    "see(list(r.iter_content(7)))",
    "see(b''.join(r.iter_content(None)))",
    "see(list(r.iter_content(4096, decode_unicode=True)))",
    "see(list(r.iter_content(3, decode_unicode=True)))",
    "see(list(r.iter_lines()))",
    "see(list(r.iter_lines(3, delimiter=b'\\n')))",
    "see(list(r.iter_lines(5, decode_unicode=True)))",
    "see(list(r))",
    "see(r.raw.read())",
    "see(r.raw.read(decode_content=True))",
    "see(list(iter(lambda: r.raw.read(5), b'')))",
    "see(list(iter(lambda: r.raw.read(64, decode_content=True), b'')))",
    "see(r.raw.read(3), r.raw.read(0), r.raw.read(), r.raw.read(), r.raw.read(3))",
    "see(b''.join(iter(lambda: r.raw.read1(9), b'')))",
    "see(b''.join(iter(lambda: r.raw.read1(), b'')))",
    "b = bytearray(9); see([(n, bytes(b[:n])) for n in iter(lambda: r.raw.readinto(b), 0)])",
    "see(list(r.raw.stream(9)))",
    "see(list(r.raw.stream(9, decode_content=True)))",
    "see(list(r.raw.read_chunked(6)))",
    "see(list(r.raw.read_chunked(decode_content=True)))",
    "f = io.BytesIO(); shutil.copyfileobj(r.raw, f); see(f.getvalue())",
    "r.raw.decode_content = True; f = io.BytesIO(); shutil.copyfileobj(r.raw, f, 11); see(f.getvalue())",
    "see(io.TextIOWrapper(r.raw, 'latin-1').read())",
    "see(io.TextIOWrapper(r.raw, 'latin-1', newline='').readlines())",
    "see(list(csv.reader(io.TextIOWrapper(io.BufferedReader(r.raw), 'latin-1'))))",
    "see(io.BufferedReader(r.raw, 16).read())",
    "f = io.BufferedReader(r.raw, 8); see(f.read(3), f.peek(1)[:1], f.readline(), f.read(), f.closed)",
    "see(list(r.raw))",
    "see([r.raw.readline(), r.raw.readline(4)], r.raw.readlines())",
    "see(gzip.GzipFile(fileobj=r.raw).read())",
    "see(json.load(r.raw))",
    "see(zipfile.ZipFile(io.BytesIO(r.content)).namelist())",
    "see(tarfile.open(fileobj=r.raw, mode='r|*').getnames())",
    "see(r.raw.data)",
    "see(r.raw.read(cache_content=True), r.raw.data)",
    "see(r.raw.read(2)); r.close(); see(r.raw.closed, r.raw.read())",
    "with r: see(next(r.iter_content(3)))",
    "see(next(r.iter_content(3))); see(r.content)",
    "see(r.raw.read(4)); r.raw.release_conn()",
    "r.raw.drain_conn(); see(r.raw.closed, r.raw.read())",
    "see(r.raw.read(2)); see(next(r.iter_lines()))",
    "see(pickle.loads(pickle.dumps(r)).content)",
    "see(next(iter(r.iter_content(4))), r.raw.tell(), r.raw.closed); r.close()",
    "see(codecs.getreader('utf-8')(r.raw).read())",
    "see(hashlib.md5(r.content).hexdigest(), r.content is r.content)",
    "r.close(); see(r.content)",
    "see(r.raw._fp is None)",
]
"""How a body is read from the connection."""

AFTER = [
    "see(r.raw.closed, r.raw.isclosed(), r.raw.tell())",
    "see(r.raw.length_remaining, r.raw.readable())",
    "see(r.raw.read(), r.raw.read(1))",
    "see(r.content)",
    "see(list(r.iter_content(2)))",
    "r.close()",
    "with r: pass",
    "see(r.text, r.encoding, r.apparent_encoding)",
    "see(r.raw.trailers if hasattr(r.raw, 'trailers') else None)",
    "del r",
    "see(session.cookies.items())",
]
"""What a program asks afterwards."""
