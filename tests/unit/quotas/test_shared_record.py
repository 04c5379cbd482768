from __future__ import annotations

import struct
from zlib import crc32

from hypothesis import given
from hypothesis import strategies as st

from requests_smithy_retry.quotas.shared_memory.file import FILE_SIZE, HEADER, SLOT_SIZE
from requests_smithy_retry.quotas.shared_memory.records import (
    EMPTY,
    OVERFLOW,
    RECORD_SIZE,
    Record,
    key_of,
    level_of,
    offset_of,
    unpack,
)

KEY = key_of("https://api.example.com:443")


def packed(level: float, at: float, key: bytes = KEY) -> bytes:
    return Record(key, level, at).pack()


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_a_record_comes_back_as_it_was(level: float, at: float) -> None:
    """Any finite or infinite numbers can be packed and unpacked."""
    assert unpack(packed(level, at)) == Record(KEY, level, at)


@given(st.integers(0, RECORD_SIZE - 1), st.integers(1, 255))
def test_a_changed_byte_is_noticed(position: int, change: int) -> None:
    """Any byte but the unused ones behind the version byte is covered by the checksum, and those too."""
    data = bytearray(packed(486.0, 12.5))
    data[position] ^= change
    assert unpack(bytes(data)) is None


def test_an_empty_slot_holds_no_record() -> None:
    """Zeros are not a record of version 0."""
    assert unpack(EMPTY) is None


def test_another_version_is_no_record() -> None:
    """A record of another version is not read, even if its checksum is right."""
    body = b"\x03" + packed(1, 2)[1:-4]
    assert unpack(body + struct.pack("<I", crc32(body))) is None


def test_the_layout() -> None:
    """Records are aligned to 64 bytes behind a header of 64, and their level to 8."""
    assert (len(HEADER), RECORD_SIZE <= SLOT_SIZE) == (64, True)
    assert level_of(bytes(8) + packed(486.5, 12.5), 8) == 486.5
    assert (offset_of(0), offset_of(OVERFLOW) + SLOT_SIZE) == (64, FILE_SIZE)


def test_a_file_is_one_for_all_that_run_this_version() -> None:
    """The file's first bytes give format, version and layout; a scope has the same key everywhere."""
    assert HEADER == b"SmithyQ\x02" + b"\x40\0\0\0" + b"\x01\x04\0\0" + bytes(48)
    assert key_of("https://api.example.com:443").hex() == "fe94d59ceeabf9936bc49d28bf9cd914"
    data = bytes.fromhex("0200000000000000" + KEY.hex() + "000000000000f03f" + "0000000000000040" + "f5672ee7")
    assert packed(1.0, 2.0) == data
    assert unpack(data) == Record(KEY, 1.0, 2.0)
    assert unpack(data[:-1] + b"\0") is None


def test_keys_are_of_one_size_whatever_the_scope() -> None:
    """Any text is a scope, even one that is no valid unicode."""
    keys = {key_of(scope) for scope in ("", "a", "b" * 10_000, "\udcff")}
    assert (len(keys), {len(key) for key in keys}) == (4, {16})
