"""Inputs opened, unpacked and watched."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.model.errors import Unreadable
from compactor_cli.read.streams import Compression, ContentHash, compression_named, look_at, open_stream, packing, zstd

DATA = b'{"a":1}\n' * 5000


def plain(data: bytes) -> bytes:
    return data


def zst(data: bytes) -> bytes:
    file = io.BytesIO()
    with packing(file, Compression.ZSTD) as packer:
        packer.write(data)
    return file.getvalue()


PACKERS = [(plain, Compression.NONE), (gzip.compress, Compression.GZIP), (zst, Compression.ZSTD)]


@pytest.mark.parametrize(("pack", "compression"), PACKERS)
def test_compression_is_known_by_content_not_by_name(
    tmp_path: Path, pack: Callable[[bytes], bytes], compression: Compression
) -> None:
    path = tmp_path / "any.name"
    path.write_bytes(pack(DATA))
    seen = ContentHash()
    pieces: list[bytes] = []
    with open_stream(str(path), [seen, lambda piece: pieces.append(bytes(piece))]) as stream:
        assert stream.compression is compression
        assert stream.reader.read() == DATA
        assert stream.look == look_at(path)
    expected = ContentHash()
    expected(DATA)
    assert (seen.sha256, seen.size_bytes) == (expected.sha256, len(DATA))
    assert b"".join(pieces) == DATA


@pytest.mark.parametrize("pack", [gzip.compress, zst])
def test_members_one_after_another_are_one_input(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "x"
    path.write_bytes(pack(b"a\n") + pack(b"") + pack(b"b\n"))
    with open_stream(str(path)) as stream:
        assert list(stream.reader) == [b"a\n", b"b\n"]


def test_a_skippable_frame_in_front_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + zst(b"a\n"))
    with open_stream(str(path)) as stream:
        assert stream.reader.read() == b"a\n"


@pytest.mark.parametrize("data", [b"", b"{", b"{}", b"\x1f", b"\x28\xb5\x2f"])
def test_short_inputs_are_read_as_they_are(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    with open_stream(str(path)) as stream:
        assert stream.reader.read() == data


@pytest.mark.parametrize("pack", [gzip.compress, zst])
@pytest.mark.parametrize("damage", [lambda data: data[:-5], lambda data: data[:20] + b"\xff" * 9 + data[29:]])
def test_broken_compression_is_unreadable_with_a_next_step(
    tmp_path: Path, pack: Callable[[bytes], bytes], damage: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "x"
    path.write_bytes(damage(pack(DATA + os.urandom(5000))))
    with pytest.raises(Unreadable) as caught, open_stream(str(path)) as stream:
        stream.reader.read()
    assert caught.value.place == str(path)
    assert caught.value.next_step


def test_missing_and_directory_are_unreadable_with_a_next_step(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="no such file"):
        open_stream(str(tmp_path / "none"))
    with pytest.raises(Unreadable, match="use -r"):
        open_stream(str(tmp_path))


def test_no_permission_is_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, **_: object) -> io.FileIO:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(io, "FileIO", refuse)
    with pytest.raises(Unreadable, match="no permission"):
        open_stream(str(tmp_path / "x"))


READ_STDIN = """
from compactor_cli.read.streams import open_stream
with open_stream("-") as stream:
    print(stream.compression, stream.look is None, len(stream.reader.read()))
"""


@pytest.mark.parametrize(("pack", "compression"), PACKERS)
def test_standard_input_is_unpacked_too(pack: Callable[[bytes], bytes], compression: Compression) -> None:
    done = subprocess.run([sys.executable, "-c", READ_STDIN], input=pack(DATA), capture_output=True, check=True)
    assert done.stdout.split() == [compression.encode(), b"True", str(len(DATA)).encode()]


def test_standard_input_that_does_not_block_is_waited_for() -> None:
    end, other = os.pipe()
    os.set_blocking(end, False)
    with subprocess.Popen([sys.executable, "-c", READ_STDIN], stdin=end, stdout=subprocess.PIPE) as reader:
        os.close(end)
        for piece in (DATA[:1], DATA[1:]):
            time.sleep(0.3)
            os.write(other, piece)
        os.close(other)
        assert reader.stdout is not None
        assert reader.stdout.read().split()[-1] == str(len(DATA)).encode()


def test_a_pipe_that_drips_is_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def drip() -> None:
        with pipe.open("wb", buffering=0) as file:
            for byte in zst(b"a\n"):
                file.write(bytes([byte]))

    writer = threading.Thread(target=drip)
    writer.start()
    with open_stream(str(pipe)) as stream:
        assert stream.look is None
        assert stream.reader.read() == b"a\n"
    writer.join()


@given(st.binary(), st.sampled_from(Compression))
def test_packing_is_undone_by_reading_and_gives_the_same_bytes_again(data: bytes, compression: Compression) -> None:
    def pack() -> bytes:
        file = io.BytesIO()
        with packing(file, compression) as packer:
            packer.write(data)
        return file.getvalue()

    packed = pack()
    assert packed == pack()
    unpacked = {Compression.NONE: plain, Compression.GZIP: gzip.decompress, Compression.ZSTD: zstd().decompress}
    assert unpacked[compression](packed) == data


def test_names_promise_a_compression() -> None:
    assert compression_named("a.jsonl.gz") is Compression.GZIP
    assert compression_named("A.JSONL.ZST") is Compression.ZSTD
    assert compression_named("a.jsonl") is Compression.NONE
