"""Outputs: never written through a link, whole or not at all, readable by their owner alone where they hold secrets."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import dipriv
from dipriv._base.atomic_write import create, write_atomic, write_text
from dipriv._sinks import FileSink
from dipriv.cli import app
from dipriv.errors import InputError, StorageError
from dipriv.guarantee.sidecar import SIDECAR_SUFFIX
from dipriv.ledger import Ledger
from dipriv.release import local


def released(tmp_path: Path) -> pa.RecordBatch:
    return pa.record_batch({"x": [1, 2]})


@pytest.mark.parametrize("there", [True, False], ids=["a link to a file", "a link to nothing"])
def test_an_output_is_never_written_through_a_link(there: bool, tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "out.csv"
    if there:
        target.write_text("mine", encoding="utf-8")
    link.symlink_to(target)
    with pytest.raises(InputError, match="exists"):
        FileSink.at(link)
    with FileSink.at(link, force=True) as sink:
        sink.write(released(tmp_path))
        sink.commit()
    assert not link.is_symlink()
    assert link.read_text(encoding="utf-8") == '"x"\n1\n2\n'
    assert target.exists() == there
    if there:
        assert target.read_text(encoding="utf-8") == "mine"


def test_a_link_that_appears_meanwhile_is_not_written_through(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "out.csv"
    with FileSink.at(link) as sink:
        sink.write(released(tmp_path))
        link.symlink_to(target)
        with pytest.raises(StorageError, match="File exists"):
            sink.commit()
    assert not target.exists()


def test_a_file_that_is_there_is_not_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    for name in ("there", "link"):
        with pytest.raises(FileExistsError):
            create(tmp_path / name)
    assert not (tmp_path / "target").exists()


def test_exports_schemas_and_notes_replace_links(tmp_path: Path, exported: dict[str, bytes]) -> None:
    loaded = local.read(exported["gamma"])
    writers: tuple[Callable[[Path], None], ...] = (
        lambda path: local.save(path, loaded.fitted, loaded.guarantee),
        dipriv.Schema({"a": dipriv.Continuous()}).save,
        lambda path: write_text(path, "text"),
        lambda path: write_atomic(path, b"bytes"),
    )
    for number, write in enumerate(writers):
        target, link = tmp_path / f"target{number}.json", tmp_path / f"link{number}.json"
        target.write_text("mine", encoding="utf-8")
        link.symlink_to(target)
        write(link)
        assert not link.is_symlink()
        assert target.read_text(encoding="utf-8") == "mine"
    assert not [found for found in tmp_path.iterdir() if found.name.endswith(".part")]


def test_a_name_too_long_for_its_note_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too long by"):
        FileSink.at(tmp_path / f"{'x' * 230}.csv")
    (tmp_path / f"t.csv{SIDECAR_SUFFIX}").mkdir()
    with pytest.raises(InputError, match="is a folder; a file is to be written"):
        FileSink.at(tmp_path / "t.csv")


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0, 0o022])
@pytest.mark.parametrize("before", [None, 0o666])
def test_what_holds_secrets_is_for_its_owner_alone(mask: int, before: int | None, tmp_path: Path) -> None:
    table = tmp_path / "in.csv"
    table.write_text("a,b\n" + "1,x\n2,y\n" * 50, encoding="utf-8")
    secret = {name: tmp_path / name for name in ("draft.toml", "schema.json", "ledger.db", "report.html")}
    with umask(mask):
        if before is not None:
            Ledger.create(secret["ledger.db"]).close()
            for path in secret.values():
                path.touch()
                path.chmod(before)
        run = CliRunner().invoke
        assert run(app, ["inspect", str(table), "-o", str(secret["draft.toml"]), "--force"]).exit_code == 0
        dipriv.Schema({"a": dipriv.Discrete(levels=(1, 2))}).save(secret["schema.json"])
        make = Ledger.create if before is None else Ledger.open
        make(secret["ledger.db"]).close()
        if mask:  # reports take long
            del secret["report.html"]
        else:
            (tmp_path / "again.csv").write_bytes(table.read_bytes())
            told = ["-o", str(secret["report.html"]), "--force"]
            assert run(app, ["compare", str(table), str(tmp_path / "again.csv"), *told]).exit_code == 0
    assert {name: mode(path) for name, path in secret.items()} == dict.fromkeys(secret, 0o600)


def test_what_is_published_is_as_open_as_the_umask_says(tmp_path: Path) -> None:
    for mask, expected in ((0o022, 0o644), (0o077, 0o600)):
        with umask(mask), FileSink.at(tmp_path / f"{mask}.csv") as sink:
            sink.write(released(tmp_path))
            parts = [mode(path) for path in tmp_path.glob(".*.part")]
            sink.commit()
        assert mode(tmp_path / f"{mask}.csv") == expected
        assert parts == [0o600]  # while it is written


SLOW_WRITING = """
import time
from pathlib import Path
from dipriv._sinks import FileSink
from dipriv.cli import main

plain = FileSink.write

def write(sink, batch):
    plain(sink, batch)
    Path("writing").touch()
    time.sleep(60)

FileSink.write = write
main()
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow)]
)
def test_nothing_unfinished_stays_when_a_command_is_stopped(number: int, code: int, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("a,b\n" + "1,3\n2,4\n" * 50, encoding="utf-8")
    Ledger.create(tmp_path / "ledger.db").close()
    arguments = ["privatize", "in.csv", "-o", "out.csv", "-e", "1", "--ledger", "ledger.db", "--dataset", "people"]
    with subprocess.Popen([sys.executable, "-c", SLOW_WRITING, *arguments], cwd=tmp_path) as process:
        end = time.monotonic() + 100
        while not (tmp_path / "writing").exists():
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)
        assert list(tmp_path.glob(".out.csv.*.part"))  # control
        process.send_signal(number)
    assert process.returncode == code
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "ledger.db", "writing"]
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert [record.state for record in ledger.records("people")] == ["failed"]
