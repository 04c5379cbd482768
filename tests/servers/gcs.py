"""Google's own conformance tests of retries, run with google-cloud-storage: plain, and with our adapter beneath it.

    python -m tests.servers.gcs retry_tests.json http://127.0.0.1:9000

The first argument is `storage/v1/retry_tests.json` of googleapis/conformance-tests, the second the address of a
running googleapis/storage-testbench (`python testbench_run.py 127.0.0.1 9000 10`). Three ways: the SDK with its own
retries, the same with ours beneath them, and ours alone. Printed are the cases whose end differs from what the suite
wants.
"""

from __future__ import annotations

import collections
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import requests

from requests_smithy_retry import mount

BODY = bytes(range(256)) * 1024 * 9
"""9 MiB: the uploads that break off after 8 MiB go on."""


class Things:
    """What the methods work on, made anew for each case through a client without trouble."""

    def __init__(self, client: Any, test: Any) -> None:
        self.test, name = test, f"b{uuid4().hex}"
        plain = client.bucket(name)
        plain.storage_class = "STANDARD"
        client.create_bucket(plain)
        blob = plain.blob("a")
        blob.upload_from_string(BODY)
        other = plain.blob("b")
        other.upload_from_string(b"other")
        self.blob_size = len(BODY)
        self.bucket = test.bucket(name)
        self.blob = self.bucket.blob("a")
        self.other = self.bucket.blob("b")
        self.generation = blob.generation
        plain.reload()
        self.metageneration = plain.metageneration
        self.notification = plain.notification("topic", topic_project="p")
        self.notification.create()
        self.key, _ = client.create_hmac_key("a@example.com")


Method = Callable[[Things, bool, dict[str, Any]], object]


def _downloaded(things: Things, _: bool, retry: dict[str, Any]) -> None:
    assert things.blob.download_as_bytes(**retry) == BODY


def _uploaded(things: Things, is_guarded: bool, retry: dict[str, Any]) -> None:
    blob = things.bucket.blob("new", chunk_size=None)
    blob.upload_from_string(BODY, **({"if_generation_match": 0} if is_guarded else {}), **retry)


def _guard(is_guarded: bool, **condition: Any) -> dict[str, Any]:
    return condition if is_guarded else {}


def _key(things: Things) -> Any:
    from google.cloud.storage.hmac_key import HMACKeyMetadata

    return HMACKeyMetadata(things.test, access_id=things.key.access_id)


METHODS: dict[str, Method] = {
    "buckets.delete": lambda t, g, r: [b.delete() for b in t.bucket.list_blobs()] and t.bucket.delete(**r),
    "buckets.get": lambda t, g, r: t.test.get_bucket(t.bucket.name, **r),
    "buckets.getIamPolicy": lambda t, g, r: t.bucket.get_iam_policy(**r),
    "buckets.insert": lambda t, g, r: t.test.create_bucket(f"n{uuid4().hex}", **r),
    "buckets.list": lambda t, g, r: list(t.test.list_buckets(**r)),
    "buckets.testIamPermissions": lambda t, g, r: t.bucket.test_iam_permissions(["storage.objects.get"], **r),
    "buckets.patch": lambda t, g, r: _patched(t.bucket, _guard(g, if_metageneration_match=t.metageneration), r),
    "hmacKey.create": lambda t, g, r: t.test.create_hmac_key("b@example.com", **r),
    "hmacKey.get": lambda t, g, r: _key(t).reload(**r),
    "hmacKey.list": lambda t, g, r: list(t.test.list_hmac_keys(**r)),
    "notifications.get": lambda t, g, r: t.bucket.get_notification(t.notification.notification_id, **r),
    "notifications.insert": lambda t, g, r: t.bucket.notification("topic", topic_project="p").create(**r),
    "notifications.delete": lambda t, g, r: t.bucket.notification(
        topic_name="topic", notification_id=t.notification.notification_id
    ).delete(**r),
    "objects.get": _downloaded,
    "objects.list": lambda t, g, r: list(t.test.list_blobs(t.bucket, **r)),
    "objects.insert": _uploaded,
    "objects.delete": lambda t, g, r: t.blob.delete(**_guard(g, if_generation_match=t.generation), **r),
    "objects.patch": lambda t, g, r: _patched(t.blob, _guard(g, if_metageneration_match=1), r),
    "objects.compose": lambda t, g, r: t.bucket.blob("c").compose(
        [t.blob, t.other], **_guard(g, if_generation_match=0), **r
    ),
    "objects.copy": lambda t, g, r: t.bucket.copy_blob(t.other, t.bucket, "d", **_guard(g, if_generation_match=0), **r),
    "objects.rewrite": lambda t, g, r: t.bucket.blob("e").rewrite(t.other, **_guard(g, if_generation_match=0), **r),
    "serviceaccount.get": lambda t, g, r: t.test.get_service_account_email(**r),
    "object_acl.list": lambda t, g, r: t.blob.acl.reload(**r) if "retry" not in r else t.blob.acl.reload(),
    "bucket_acl.list": lambda t, g, r: t.bucket.acl.reload(),
    "default_object_acl.list": lambda t, g, r: t.bucket.default_object_acl.reload(),
}


def _patched(thing: Any, guard: dict[str, Any], retry: dict[str, Any]) -> None:
    thing.metadata = thing.labels = {"a": "1"}
    thing.patch(**guard, **retry)


def client_of(url: str) -> Any:
    """Return a client of the testbench."""
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    return storage.Client("p", credentials=AnonymousCredentials(), client_options={"api_endpoint": url})


WAYS = {"its own": (False, True), "ours beneath": (True, True), "ours alone": (True, False)}
"""By name: is our adapter mounted, and does the SDK retry."""


def ended(url: str, instructions: list[str], name: str, is_guarded: bool, way: str) -> tuple[str, bool]:
    """Run one method of one case; return its end, and if all instructions were used up."""
    has_ours, has_own = WAYS[way]
    things = Things(client_of(url), client_of(url))
    made = requests.post(
        f"{url}/retry_test", json={"instructions": {f"storage.{name}": instructions}, "transport": "HTTP"}, timeout=30
    )
    if made.status_code != 200:
        return f"the testbench knows no such method: {made.status_code}", True
    test = made.json()["id"]
    session = things.test._http
    session.headers["x-retry-test-id"] = test
    if has_ours:
        mount(session)
    try:
        METHODS[name](things, is_guarded, {} if has_own else {"retry": None})
        end = "success"
    except Exception as error:
        end = f"{type(error).__name__}: {str(error)[:100]}"
    state = requests.get(f"{url}/retry_test/{test}", timeout=30).json()
    return end, bool(state.get("completed"))


def main() -> int:
    """Run everything."""
    file, url = sys.argv[1:3]
    counted: dict[str, collections.Counter[str]] = {way: collections.Counter() for way in WAYS}
    for scenario in json.loads(Path(file).read_text(encoding="utf-8"))["retryTests"]:
        for case in scenario["cases"]:
            for method in scenario["methods"]:
                name = method["name"].removeprefix("storage.")
                if name not in METHODS:
                    continue
                ends = {}
                for way in WAYS:
                    instructions = case["instructions"]
                    end, is_used_up = ended(url, instructions, name, scenario["preconditionProvided"], way)
                    is_fine = (end == "success") == scenario["expectSuccess"]
                    counted[way]["as wanted" if is_fine else "otherwise"] += 1
                    ends[way] = (is_fine, end, is_used_up)
                if not all(is_fine for is_fine, *_ in ends.values()):
                    told = scenario["id"], case["instructions"], name, "wanted", scenario["expectSuccess"], ends
                    sys.stdout.write(f"{told}\n")
                    sys.stdout.flush()
    for way, counts in counted.items():
        sys.stdout.write(f"{way}: {dict(counts)}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
