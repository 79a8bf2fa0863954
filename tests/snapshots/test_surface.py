"""A change of the public names, signatures or help is seen in review: the snapshots change with it."""

from __future__ import annotations

import pytest

import dipriv
from tests.snapshots.surface import COMMANDS, page_of_commands, snapshots, stored

REMEDY = "The public surface changed. If that is intended, run `make snapshots`, read the diff, and commit it."
FOUND = snapshots()


@pytest.mark.parametrize("name", sorted(FOUND.keys() | stored().keys()))
def test_the_surface_is_that_on_record(name: str) -> None:
    assert FOUND.get(name, "").splitlines() == stored().get(name, "").splitlines(), REMEDY


def test_the_page_of_commands_has_the_help_on_record() -> None:
    assert COMMANDS.read_text(encoding="utf-8") == page_of_commands(FOUND), REMEDY


def test_a_changed_signature_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control."""

    def privatize(data: object) -> None: ...

    monkeypatch.setattr(dipriv, "privatize", privatize)
    assert "def privatize(data: object) -> None" in snapshots()["api.txt"]
    assert "def privatize(data: object) -> None" not in FOUND["api.txt"]


def test_no_page_depends_on_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert snapshots() == FOUND
    assert not any("\x1b" in text for text in FOUND.values())
