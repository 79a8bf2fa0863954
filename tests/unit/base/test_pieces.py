"""Ranges of rows in pieces, and items that are made ahead of their use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from dipriv._base.parallel import ahead, pieces


@pytest.mark.parametrize("rows", [(0, 0), (0, 1), (3, 17), (0, 10), (5, 15)])
def test_pieces_are_all_rows_in_order(rows: tuple[int, int]) -> None:
    found = list(pieces(slice(*rows), 5))
    assert found[0].start == rows[0]
    assert [row for piece in found for row in range(piece.start, piece.stop)] == list(range(*rows))
    assert all(piece.stop - piece.start <= 5 for piece in found)


@pytest.mark.parametrize("threads", ["1", "2"])
def test_items_come_in_order_and_errors_where_they_happen(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIPRIV_THREADS", threads)

    def items() -> Iterator[int]:
        yield from range(3)
        raise KeyError

    seen = []
    with pytest.raises(KeyError):  # noqa: PT012 - what comes before the error counts
        for item in ahead(items()):
            seen.append(item)
    assert seen == [0, 1, 2]


def test_the_next_item_is_made_while_one_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIPRIV_THREADS", "2")
    made = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        made.set()
        yield 2

    for item in ahead(items()):
        assert made.wait(timeout=20) or item == 2


def test_what_is_left_unread_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIPRIV_THREADS", "2")
    closed = threading.Event()

    def items() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    some: Any = ahead(items())
    next(some)
    some.close()
    assert closed.wait(timeout=20)
