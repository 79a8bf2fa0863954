"""A ledger recognizes a table that was changed to evade its budget, and the audit notices a ledger that does not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dipriv
from dipriv._base.table_fingerprint import Shared
from dipriv.auditing import recognition
from dipriv.auditing.recognition import audit_recognition, evasions
from dipriv.auditing.results import Audit, Check
from dipriv.ledger import Ledger

N = 400
RNG = np.random.default_rng(6)
PEOPLE = pa.table(
    {
        "id": RNG.permutation(N),
        "age": RNG.integers(18, 90, N),
        "job": RNG.choice(["nurse", "cook", "clerk"], N),
        "pay": np.round(RNG.lognormal(9, 1, N), 2),
    }
)
WAYS = [way.words for way in evasions(PEOPLE, RNG)]


@cache
def checks() -> dict[str, Check]:
    return {check.what: check for check in audit_recognition(PEOPLE)}


@pytest.mark.parametrize("words", WAYS)
def test_a_changed_table_is_recognized(words: str) -> None:
    assert checks()[f"a ledger recognizes {words}"].passed


def test_other_rows_pass() -> None:
    assert checks()["a ledger lets other rows pass"].passed


@pytest.mark.slow
def test_a_ledger_that_forgets_fingerprints_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: the key changes with every release, so no fingerprint is ever met again."""
    keys = iter(range(10_000))
    monkeypatch.setattr(Ledger, "fingerprint_key", lambda self: next(keys).to_bytes(32, "big"))
    found = audit_recognition(PEOPLE)
    assert {check.what for check in found if check.passed} == {"a ledger lets other rows pass"}
    assert not any(check.exceeded for check in found)  # no part of the guarantee
    assert "second budget under another name" in Audit(1.0, "", N, checks=found).conclusion


@pytest.mark.slow
def test_fingerprints_that_depend_on_options_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: the fingerprint is taken after keep, unit, drop and columns have acted."""
    key, privatize, options = Ledger.fingerprint_key, dipriv.privatize, [""]

    def with_options(offered: Any, epsilon: float, **asked: Any) -> Any:
        options[0] = repr([asked.get(name) for name in ("keep", "unit", "drop", "columns")])
        return privatize(offered, epsilon, **asked)

    monkeypatch.setattr(recognition, "privatize", with_options)
    monkeypatch.setattr(
        Ledger, "fingerprint_key", lambda self: blake2b(key(self) + options[0].encode(), digest_size=32).digest()
    )
    found = audit_recognition(PEOPLE)
    unnoticed = {check.what for check in found if not check.passed}
    assert unnoticed >= {f"a ledger recognizes the option {name}" for name in ("keep", "unit", "drop", "columns")}
    assert all("the option" in what for what in unnoticed)


def test_a_ledger_that_samples_nothing_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: the rows and values that two tables share are not compared."""
    monkeypatch.setattr("dipriv.ledger.recognition.shared", lambda *_: Shared(0, 0.0, 1.0))
    monkeypatch.setattr("dipriv.ledger.recognition.overlap", lambda *_: 0.0)
    unnoticed = {check.what for check in audit_recognition(PEOPLE) if not check.passed}
    assert unnoticed == {"a ledger recognizes half of the rows", "a ledger recognizes a tenth of the rows"}


@pytest.mark.slow
def test_a_ledger_that_takes_every_table_for_the_same_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    preview = Ledger.preview

    def same(self: Ledger, *, names: Sequence[str], **more: Any) -> Any:
        return preview(self, names=("audited",), **more)

    monkeypatch.setattr(Ledger, "preview", same)
    found = {check.what: check.passed for check in audit_recognition(PEOPLE)}
    assert found.pop("a ledger lets other rows pass") is False
    assert all(found.values())


def test_a_table_that_cannot_be_released_by_itself_is_left_out() -> None:
    assert audit_recognition(pa.table({"x": pa.array([[1], [2]] * 50)})) == ()
