"""Whether noise is fresh: no two rows, of one release or of two, have the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import stats

from dipriv.auditing.results import Exact
from dipriv.references import Known
from dipriv.release.privatize import privatize

ROWS = 1000


def audit_noise_reuse(epsilon: float, kernel: Any = "optimal") -> Exact:
    """Equal rows of a real column are released twice by the system's randomness: by chance no two come out the same.

    Two of 2,000 would in one of four thousand million audits. Noise that is used again is subtracted by whoever sees
    both releases.

    >>> audit_noise_reuse(1.0).exceeded
    False
    """
    table = pa.table({"x": np.zeros(ROWS)})
    seen = [privatize(table, epsilon, reference=Known(stats.norm()), kernel=kernel).data["x"] for _ in range(2)]
    fresh = len(np.unique(pa.chunked_array([*seen[0].chunks, *seen[1].chunks]).to_numpy())) == 2 * ROWS
    return Exact("noise of two releases", epsilon, 0.0 if fresh else math.inf)
