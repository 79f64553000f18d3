"""Where results go, and that a source is replaced only if it is what was read."""

from __future__ import annotations

import errno
import gzip
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compactor_cli.archive.atomic import Existing
from compactor_cli.model.errors import Changed, OutputError, UsageError
from compactor_cli.read.sources import find_sources
from compactor_cli.read.streams import Compression, open_stream, packing, zstd
from compactor_cli.run.outputs import Destination, Target, TargetKind, check_replaceable, open_target, plan_targets


def plan(*paths: Path | str, recursive: bool = False, **destination: Any) -> tuple[Target, ...]:
    sources = find_sources([str(path) for path in paths], recursive=recursive)
    return plan_targets(sources, Destination(**destination))


def run(path: Path, data: bytes, target: Target) -> None:
    with open_stream(str(path)) as source:
        source.reader.read()
        with open_target(target, source) as file:
            file.write(data)


def in_place(path: Path, **destination: Any) -> Target:
    return plan(path, in_place=True, **destination)[0]


def make(path: Path, data: bytes = b"old") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_one_input_goes_to_standard_output(tmp_path: Path) -> None:
    assert plan(tmp_path / "a", compress=Compression.ZSTD) == (
        Target(path="-", kind=TargetKind.STDOUT, compression=Compression.ZSTD),
    )


def test_joining_several_inputs_is_a_usage_error(tmp_path: Path) -> None:
    for output in ("", "-", str(tmp_path / "out")):
        with pytest.raises(UsageError, match="--output-dir"):
            plan(tmp_path / "a", tmp_path / "b", output=output)


def test_an_output_is_not_overwritten_without_force(tmp_path: Path) -> None:
    source, output = make(tmp_path / "a"), make(tmp_path / "out")
    with pytest.raises(UsageError, match="-f"):
        plan(source, output=str(output))
    run(source, b"new", plan(source, output=str(output), force=True)[0])
    assert output.read_bytes() == b"new"


@pytest.mark.parametrize("name", ["a", "./a", "soft", "hard"])
def test_an_output_that_is_an_input_points_at_i(tmp_path: Path, name: str) -> None:
    source = make(tmp_path / "a")
    (tmp_path / "soft").symlink_to("a")
    os.link(source, tmp_path / "hard")
    with pytest.raises(UsageError, match="-i"):
        plan(source, output=str(tmp_path / name), force=True)


def test_a_mirrored_tree_keeps_paths_and_compression_by_name(tmp_path: Path) -> None:
    for name in ("a.jsonl", "s/b.jsonl.gz", "s/t/c.jsonl.zst"):
        make(tmp_path / "in" / name)
    out = tmp_path / "out"
    targets = plan(tmp_path / "in", recursive=True, output_dir=str(out))
    assert [(target.path, target.compression) for target in targets] == [
        (str(out / "a.jsonl"), Compression.NONE),
        (str(out / "s/b.jsonl.gz"), Compression.GZIP),
        (str(out / "s/t/c.jsonl.zst"), Compression.ZSTD),
    ]
    assert not out.exists()
    run(tmp_path / "in/s/t/c.jsonl.zst", b"new", targets[2])
    assert zstd().decompress((out / "s/t/c.jsonl.zst").read_bytes()) == b"new"


def test_compress_adds_its_suffix_in_an_output_folder(tmp_path: Path) -> None:
    source = make(tmp_path / "a.jsonl")
    target = plan(source, output_dir=str(tmp_path / "out"), compress=Compression.GZIP)[0]
    run(source, b"new", target)
    assert gzip.decompress((tmp_path / "out/a.jsonl.gz").read_bytes()) == b"new"


def test_two_sources_on_one_target_are_an_error_before_any_work(tmp_path: Path) -> None:
    make(tmp_path / "x/a.jsonl")
    make(tmp_path / "y/a.jsonl")
    with pytest.raises(UsageError, match=r"x/a\.jsonl and .*y/a\.jsonl"):
        plan(tmp_path / "x", tmp_path / "y", recursive=True, output_dir=str(tmp_path / "out"))
    with pytest.raises(UsageError, match="-i"):
        plan(tmp_path / "x", recursive=True, output_dir=str(tmp_path / "x"), force=True)


def test_contradictions_and_folders_as_output_are_usage_errors(tmp_path: Path) -> None:
    source = make(tmp_path / "a")
    with pytest.raises(UsageError):
        plan(source, output="b", in_place=True)
    with pytest.raises(UsageError, match="--output-dir"):
        plan(source, output=str(tmp_path), force=True)
    with pytest.raises(UsageError):
        plan("-", in_place=True)


def test_an_output_may_be_read_by_nobody_who_could_not_read_the_source(tmp_path: Path) -> None:
    source = make(tmp_path / "a")
    source.chmod(0o600)
    run(source, b"new", plan(source, output=str(tmp_path / "out"))[0])
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o600


def test_devices_and_pipes_are_written_to(tmp_path: Path) -> None:
    source = make(tmp_path / "a")
    run(source, b"new", plan(source, output="/dev/null")[0])
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


@pytest.mark.parametrize("compression", Compression)
def test_in_place_keeps_compression_mode_and_links(tmp_path: Path, compression: Compression) -> None:
    real = tmp_path / "real"
    with real.open("wb") as file, packing(file, compression) as packer:
        packer.write(b"old" * 100)
    real.chmod(0o640)
    (tmp_path / "link").symlink_to("real")
    run(tmp_path / "link", b"new", in_place(tmp_path / "link"))
    assert (tmp_path / "link").is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    with open_stream(str(real)) as stream:
        assert (stream.compression, stream.reader.read()) == (compression, b"new")


def test_a_file_that_grew_while_it_was_read_is_left_alone(tmp_path: Path) -> None:
    path = make(tmp_path / "a", b"{}\n")
    with open_stream(str(path)) as source:
        source.reader.read()
        with pytest.raises(Changed), open_target(in_place(path), source) as file:  # noqa: PT012 -- what happens inside is the case
            file.write(b"new")
            with path.open("ab") as client:
                client.write(b"more\n")
    assert path.read_bytes() == b"{}\nmore\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_was_replaced_or_removed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = make(tmp_path / "a")
    other = make(tmp_path / "b")
    for change in (lambda: other.replace(path), path.unlink):
        with open_stream(str(path)) as source, pytest.raises(Changed), open_target(in_place(path), source):
            change()
    assert list(tmp_path.iterdir()) == []


def test_hard_linked_and_read_only_files_are_refused_without_force(tmp_path: Path) -> None:
    path = make(tmp_path / "a")
    os.link(path, tmp_path / "b")
    with pytest.raises(OutputError, match="hard links"):
        run(path, b"new", in_place(path))
    run(path, b"new", in_place(path, force=True))
    assert ((tmp_path / "a").read_bytes(), (tmp_path / "b").read_bytes()) == (b"new", b"old")
    path.chmod(0o444)
    with pytest.raises(OutputError, match="read-only"):
        run(path, b"newer", in_place(path))
    run(path, b"newer", in_place(path, force=True))
    assert path.read_bytes() == b"newer"
    assert stat.S_IMODE(path.stat().st_mode) == 0o444


def test_only_regular_files_are_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OutputError, match="regular"):
        check_replaceable(str(tmp_path / "pipe"), Existing.REPLACE)


def test_a_pipe_in_place_is_refused_before_anyone_waits_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="regular"):
        in_place(tmp_path / "pipe", force=True)


@pytest.mark.parametrize("compression", Compression)
def test_an_exception_leaves_source_and_target_as_they_were(tmp_path: Path, compression: Compression) -> None:
    source = make(tmp_path / "a.jsonl")
    mirrored = plan(source, output_dir=str(tmp_path / "out"), compress=compression)[0]
    for target in (in_place(source), mirrored):
        with open_stream(str(source)) as stream, pytest.raises(KeyboardInterrupt), open_target(target, stream) as file:  # noqa: PT012 -- what happens inside is the case
            file.write(b"half")
            raise KeyboardInterrupt
    assert source.read_bytes() == b"old"
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("call", ["fsync", "rename", "link"])
def test_a_full_disk_leaves_the_source_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    source = make(tmp_path / "a.jsonl")
    target = in_place(source) if call != "link" else plan(source, output=str(tmp_path / "new"))[0]

    def full(*args: object, **kwargs: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OutputError):  # noqa: PT012 -- what happens inside is the case
        patch.setattr(os, call, full)
        if call == "link":
            patch.setattr(os, "replace", full)
        run(source, b"new", target)
    assert source.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [source]


WRITE_HALF = """
import sys
from compactor_cli.read.streams import Compression
from compactor_cli.read.streams import open_stream
from compactor_cli.archive.atomic import Existing
from compactor_cli.run.outputs import Target, TargetKind, open_target
with open_stream("-") as source:
    with open_target(Target(path="-", kind=TargetKind.STDOUT, compression=Compression(sys.argv[1])), source) as file:
        file.write(b"half")
        if len(sys.argv) > 2:
            sys.exit(7)
"""


@pytest.mark.parametrize(("name", "undo"), [("gzip", gzip.decompress), ("zstd", zstd().decompress)])
def test_half_a_packed_result_on_standard_output_does_not_look_whole(name: str, undo: Any) -> None:
    command = [sys.executable, "-c", WRITE_HALF, name]
    whole = subprocess.run(command, input=b"", capture_output=True, check=True)
    assert undo(whole.stdout) == b"half"
    half = subprocess.run([*command, "fail"], input=b"", capture_output=True, check=False)
    assert half.returncode == 7
    with pytest.raises((OSError, EOFError, zstd().ZstdError)):
        undo(half.stdout or b"nothing")
