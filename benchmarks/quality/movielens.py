"""25 million ratings, one column of ten levels: what is left of the distribution's error at scale."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.quality.contest import APPROXIMATE, Method, Setting, contest, ours
from research.data import data_file

SEEDS = 3


def run(setting: Setting) -> dict[str, Any]:
    """Total variation and seconds."""
    counts = pd.read_csv(data_file("movielens/ml-25m-rating-counts.csv"))
    levels, count = counts["rating"].to_numpy(dtype=np.float32), counts["count"].to_numpy()
    table = pa.table({"rating": np.repeat(levels, count)})

    def score(made: pa.Table) -> dict[str, float]:
        values, found = np.unique(made["rating"].to_numpy(), return_counts=True)
        p, q = pd.Series(count / count.sum(), index=levels), pd.Series(found / found.sum(), index=values)
        return {"total variation": float(p.sub(q, fill_value=0.0).abs().sum()) / 2}

    found = contest("movielens", [Method("dipriv", APPROXIMATE, ours(table), SEEDS)], score, setting)
    return {"rows": table.num_rows, "levels": len(levels), "methods": found}
