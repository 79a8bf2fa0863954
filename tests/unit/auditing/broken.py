"""Accountants with a fault, for audits that must find it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dipriv._base.arrays import Counts
from dipriv.references._learning.measurements import Accountant, Frequent


def remove_thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A label of one row is published as often as not."""
    sound = Accountant.frequent

    def every(
        self: Accountant, counts: Counts, fixed: Counts, cost: Fraction, chance: Fraction, at_least: int = 1
    ) -> Frequent:
        return sound(self, counts, fixed, cost, Fraction(1, 2), at_least)

    monkeypatch.setattr(Accountant, "frequent", every)
