"""What a job that is stopped says about ε."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from dipriv._base.endings import MAY_BE_SPENT, NOTHING_IS_SPENT
from dipriv.errors import DiprivError
from dipriv.ledger import Ledger
from dipriv.studio import work, worker
from dipriv.studio.choices import Choices
from dipriv.studio.worker import Failure, Stopped


class Pipe:
    """A pipe with one job, whose worker is stopped when it sends the result."""

    def __init__(self, *job: Any) -> None:
        self.job, self.sent = job, list[Any]()

    def recv(self) -> Any:
        return self.job

    def send(self, message: Any) -> None:
        self.sent.append(message)
        if len(self.sent) == 1:
            raise Stopped


@pytest.mark.parametrize(("job", "said"), [(work.release, MAY_BE_SPENT), (work.plan, NOTHING_IS_SPENT)])
def test_a_job_that_is_stopped_before_its_result_is_sent_may_have_spent(
    job: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    for name in ("_outcome", "_end_with_parent"):
        monkeypatch.setattr(worker, name, lambda *_: None)
    pipe = Pipe(job, ())
    worker.serve(pipe)
    assert pipe.sent[-1] == ("result", Failure("The work was stopped.", "", (said,), is_stop=True))


@pytest.mark.parametrize("where", [(Ledger, "dataset"), (work, "_write_report"), (Ledger, "close"), (work, "Released")])
def test_what_follows_a_release_says_that_the_release_is_complete(
    where: tuple[Any, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.csv").write_text("a\n" + "1\n2\n" * 100)
    Ledger.create(tmp_path / "ledger.db").close()

    def stop(*_: Any, **__: Any) -> None:
        raise Stopped

    if where[1] != "_write_report":
        monkeypatch.setattr(work, "_write_report", lambda *_: "")
    monkeypatch.setattr(*where, stop)
    output = tmp_path / "out.csv"
    with pytest.raises(Stopped) as stopped:
        work.release(
            lambda *_: None, Choices(tmp_path / "t.csv", "t.csv"), output, tmp_path / "r", str(tmp_path / "ledger.db")
        )
    assert stopped.value.__notes__ == ["The release itself is complete: out.csv is written, and ε = 1 is spent."]
    assert output.exists()


def test_a_release_that_does_not_begin_spends_nothing(tmp_path: Path) -> None:
    (tmp_path / "no.db").write_text("no ledger")
    with pytest.raises(DiprivError) as refused:
        work.release(lambda *_: None, Choices(tmp_path / "t", "t"), tmp_path / "o", tmp_path, str(tmp_path / "no.db"))
    assert refused.value.__notes__ == [NOTHING_IS_SPENT]
