"""Whatever ends a command, it says what was spent and what is written, and its exit code is that of the reason."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from dipriv._sinks import FileSink
from dipriv.cli import terminal
from dipriv.errors import LedgerError
from dipriv.ledger import Ledger
from dipriv.references._learning.learn import MarkovPlan
from tests.unit.cli.run import Ended, run, write_table

Run = Callable[..., Ended]


@pytest.fixture
def command(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run commands in a folder with a table and a ledger."""
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "people.csv")
    Ledger.create(tmp_path / "ledger.db").close()
    monkeypatch.setenv("DIPRIV_LEDGER", str(tmp_path / "ledger.db"))
    return lambda *arguments: run(capfd, monkeypatch, *arguments)


ASKED = ("privatize", "people.csv", "-o", "out.csv", "-e", "1", "-q")


def raising(error: BaseException, after: Any = None) -> Callable[..., Any]:
    """A function that ends with this error, after it did its work if it has any."""

    def replaced(*arguments: Any, **options: Any) -> Any:
        if after is not None:
            after(*arguments, **options)
        raise error

    return replaced


def spent() -> list[str]:
    """The states of all releases in the ledger."""
    with Ledger.open(None) as ledger:
        return [record.state for found in ledger.datasets() for record in ledger.records(found.name)]


STAGES: dict[str, tuple[Any, str, bool, list[str], bool, tuple[str, ...]]] = {
    "reading": ("dipriv.release.privatize", "prepare", False, [], False, ("Nothing is spent, and nothing is writ",)),
    "reserving": (Ledger, "reserve", True, ["reserved"], False, ("ε may be spent: the ledger, if there is one, says",)),
    "learning": (MarkovPlan, "learn", False, ["failed"], False, ("release 1 of data set 'people'",)),
    "writing": (FileSink, "write", True, ["failed"], False, ("release 1 of data set 'people'", "out.csv is not writ")),
    "naming": (FileSink, "_finish", True, ["failed"], True, ("out.csv is written; the files beside it may not be.",)),
    "reporting": ("dipriv.cli.privatize", "_tell", False, ["done"], True, ("The release itself is complete: out.csv",)),
}
"""What is replaced, whether it does its work before, the ledger's states, whether OUT is there, and what is told."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "error", "code", "told"),
    [
        *((stage, KeyboardInterrupt(), 130, "Interrupted.") for stage in STAGES),
        *((stage, OSError(errno.ENOSPC, "no space"), 1, "No space left on device.") for stage in STAGES),
        ("writing", terminal.Terminated(), 143, "Terminated."),
        ("reading", MemoryError(), 1, "the command failed: MemoryError."),
    ],
)
def test_at_every_stage_the_end_says_what_is_spent(
    stage: str, error: BaseException, code: int, told: str, command: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name, works, states, is_written, said = STAGES[stage]
    place = import_module(owner) if isinstance(owner, str) else owner
    monkeypatch.setattr(place, name, raising(type(error)(*error.args), getattr(place, name) if works else None))
    ended = command(*ASKED)
    assert ended.code == code, ended
    for text in (told, *said):
        assert text in ended.err
    assert "Traceback" not in ended.err
    assert spent() == states
    assert Path("out.csv").exists() == is_written
    assert not list(Path().glob(".*part"))


def test_a_release_that_ends_well_says_nothing_of_it(command: Run) -> None:
    ended = command(*ASKED)
    assert ended.code == 0
    assert "spent" not in ended.err  # control: the sentences above come from the errors
    assert spent() == ["done"]


REFUSED: dict[str, tuple[str, tuple[str, ...]]] = {
    "before reading": ("out.csv exists.", ("privatize", "people.csv", "-o", "out.csv", "-e", "1")),
    "several": ("none.csv is not a file.", ("privatize", "none.csv", "-o", "out.csv", "-e", "1")),
    "reading": ("column 'word'", ("privatize", "odd.csv", "-o", "new.csv", "-e", "1")),
    "by the ledger": (
        "only 0.5 is left",
        ("privatize", "people.csv", "-o", "new.csv", "-e", "1", "--dataset", "people"),
    ),
}


@pytest.mark.parametrize("stage", REFUSED)
def test_a_refusal_says_that_nothing_is_spent(stage: str, command: Run) -> None:
    Path("out.csv").touch()
    Path("odd.csv").write_text("word\n" + "1\nx\n2\n" * 40)
    command("ledger", "budget", "people", "0.5")
    told, arguments = REFUSED[stage]
    ended = command(*arguments)
    assert ended.code == 1
    assert told in ended.err
    assert ended.err.count("Nothing is spent, and nothing is written.") == 1
    assert ended.err.endswith("written.\n")
    assert spent() == []


def test_a_ledger_that_fails_may_have_counted(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ledger, "reserve", raising(LedgerError("It failed.", "Mend it."), Ledger.reserve))
    ended = command(*ASKED)
    assert "It failed." in ended.err
    assert "ε may be spent" in ended.err
    assert "Nothing is spent" not in ended.err
    assert spent() == ["reserved"]


def test_rows_beyond_the_bound_are_told(command: Run) -> None:
    ended = command(*ASKED[:-1], "--unit", "affairs", "--rows-per-unit", "3")
    assert "288 rows are left out: at most 3 rows of a person are released." in ended.out


def test_a_report_that_fails_leaves_the_release_complete(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dipriv.report.compare", raising(OSError(errno.ENOSPC, "no space")))
    ended = command(*ASKED, "--report", "report.html")
    assert ended.code == 1
    assert "The release itself is complete: out.csv is written, and ε = 1 and δ = 1e-9 are spent." in ended.err
    assert spent() == ["done"]


def process(*arguments: str, reader: str) -> subprocess.CompletedProcess[str]:
    """A real process whose standard output is a pipe that nobody reads, or a disk that is full."""
    if reader == "full disk":
        place = os.open("/dev/full", os.O_WRONLY)
    else:
        read, place = os.pipe()
        os.close(read)
    try:
        return subprocess.run(
            [sys.executable, "-m", "dipriv", *arguments], stdout=place, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(place)


@pytest.mark.parametrize(
    ("error", "code", "told"), [(BrokenPipeError(), 141, ""), (OSError(28, ""), 1, "No space left")]
)
def test_printing_may_fail(error: OSError, code: int, told: str, command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal.out, "print", raising(error))
    ended = command("ledger")
    assert ended.code == code
    assert told in ended.err
    assert bool(told) == bool(ended.err)


@pytest.mark.slow
def test_a_pipe_that_nobody_reads_is_no_error(command: Run) -> None:
    done = process("ledger", reader="nobody")
    assert (done.returncode, done.stderr) == (141, "")
    full = process("ledger", reader="full disk")  # control
    assert full.returncode == 1
    assert "No space left on device" in full.stderr
    assert "Exception" not in full.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("reader", "code"), [("nobody", 141), ("full disk", 1)])
def test_released_rows_that_nobody_takes_are_spent(reader: str, code: int, command: Run) -> None:
    done = process("privatize", "people.csv", "-o", "-", "-e", "1", "-q", reader=reader)
    assert done.returncode == code
    assert "are spent in the ledger, as release 1 of data set 'people'" in done.stderr
    assert "may be a part of the rows" in done.stderr
    assert ("Error:" in done.stderr) == (reader == "full disk")
    assert spent() == ["failed"]
    done = process("privatize", "people.csv", "-o", "out.csv", "-e", "1", reader=reader)
    assert done.returncode == code
    assert "The release itself is complete: out.csv is written" in done.stderr
    assert sorted(spent()) == ["done", "failed"]


@pytest.mark.slow
@pytest.mark.parametrize("command_line", [("inspect", "people.csv"), ("plan", "people.csv"), ("ledger", "show", "x")])
def test_other_commands_and_closed_pipes(command_line: tuple[str, ...], command: Run) -> None:
    command("ledger", "budget", "x", "1")
    done = process(*command_line, reader="nobody")
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_at_any_moment(number: signal.Signals, code: int, command: Run, tmp_path: Path) -> None:
    """What is told agrees with the ledger, whenever the signal comes."""
    write_table(tmp_path / "people.csv", 200_000)
    for moment in range(8):
        before = spent()
        running = subprocess.Popen(
            [sys.executable, "-m", "dipriv", *ASKED, "--force", "--dataset", "people"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        time.sleep(0.8 + 0.5 * moment)
        running.send_signal(number)
        _, told = running.communicate(timeout=120)
        now = spent()
        assert running.returncode in (0, code, -number), told
        if running.returncode == -number:  # Python itself was still starting, or ending
            assert len(now) == len(before) or now[-1] == "done"
        elif running.returncode:
            assert ("Interrupted." if number == signal.SIGINT else "Terminated.") in told
            spoken = any(text in told for text in ("spent in the ledger", "complete", "may be spent"))
            assert spoken == (len(now) > len(before))
            assert ("Nothing is spent" in told) == (len(now) == len(before))
