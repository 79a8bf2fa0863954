"""Noise reuse: no two rows, of one release or of two, may share their noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import stats

from dipriv.auditing.results import Exact
from dipriv.references import Known
from dipriv.release.privatize import privatize

N_ROWS = 1000
"""Rows of each of the two releases."""


def audit_noise_reuse(epsilon: float, kernel: Any = "optimal") -> Exact:
    """Release the same constant real column twice without a seed; all released values must be distinct.

    With independent noise two of the 2,000 values are equal with probability below 1 in 4 * 10^9. Noise that is reused
    can be subtracted by anyone who sees both releases.

    >>> audit_noise_reuse(1.0).exceeded
    False
    """
    table = pa.table({"x": np.zeros(N_ROWS)})
    released = [privatize(table, epsilon, reference=Known(stats.norm()), kernel=kernel).data["x"] for _ in range(2)]
    distinct = len(np.unique(pa.chunked_array([*released[0].chunks, *released[1].chunks]).to_numpy())) == 2 * N_ROWS
    return Exact("noise of two releases", epsilon, 0.0 if distinct else math.inf)
