"""How much a released row says about its original row, beside what reference and kernel leave on average."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dipriv._base.arrays import FloatArray
from dipriv._base.columns import NULL, PRESENT, ColumnValues
from dipriv.release.fidelity import correlation_of, kappa_of
from dipriv.report.facts import MIN_ROWS_SHOWN, Fidelity
from dipriv.report.pairing import Pair


def row_fidelity(pair: Pair, expected: Mapping[str, float]) -> tuple[Fidelity, ...]:
    """Correlation of numbers and times, agreement of labels beyond chance; nothing where rows are not paired."""
    if pair.mates is None:
        return ()
    one, two = _cells(pair.mates.all), _cells(pair.after.all)
    if len(one if pair.scale == "label" else one.present) < MIN_ROWS_SHOWN:
        return ()
    if pair.scale == "label":
        found = Fidelity("agreement beyond chance", kappa_of(one, two), expected.get(pair.name))
    else:
        found = Fidelity("correlation", correlation_of(one, two), expected.get(pair.name))
    return (found,) if np.isfinite(found.value) else ()


def _cells(values: FloatArray) -> ColumnValues:
    missing = np.isnan(values)
    return ColumnValues(np.where(missing, 0.0, values), np.where(missing, NULL, PRESENT).astype(np.uint8))
