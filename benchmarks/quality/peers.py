"""OpenDP's MST and AIM on a pandas frame: the columns coded in public, the synthetic rows brought back.

Every column is given to the peers as whole numbers 0 to k - 1 with public cuts between them, which spares them the cell
for nulls that OpenDP adds to columns with keys. Labels are declared; a wide numeric column gets public bins, and a
value comes back uniform inside its bin.

OpenDP 0.16 requires mbi 1.1.0, whose `synthetic_data` draws badly (its own repository, pull request 145): rounding ties
columns together that the model holds independent, and it conditions on the measured cliques instead of those of the
junction tree. Both are avoided here, in the peers' favour: rows are sampled, and the model is given whole cliques.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

from benchmarks.quality.bins import Codebook
from benchmarks.quality.contest import DELTA, EPSILON
from benchmarks.quality.histograms import rho

PACKAGES = ("opendp", "mbi", "jax", "polars", "randomgen")
LOSSES = {
    "pure": {"epsilon": EPSILON / 2},
    "delta": {"rho": rho(EPSILON, DELTA) / 4},
    "weaker": {"rho": rho(EPSILON, DELTA)},
}
"""What OpenDP is asked for, so that ε or (ε, δ) holds where one row is replaced; its own neighbours add or remove one.

Replacing is removing and adding, so that half of ε suffices. With δ and public bins OpenDP takes zCDP, where groups of
two cost four times as much (Bun, Steinke 2016, Proposition 1.9): a quarter of the ρ that gives (ε, δ). The weaker loss
is that of (ε, δ) for its own neighbours.
"""
PROMISES = {
    "pure": "ε = 0.5, add or remove one row; this implies ε = 1, replace one row",
    "delta": f"{LOSSES['delta']['rho']:.5f}-zCDP, add or remove one row; this implies ε = 1, δ = 1e-9, replace one row",
    "weaker": f"{LOSSES['weaker']['rho']:.5f}-zCDP: ε = 1, δ = 1e-9 for one row added or removed",
}


def lacking() -> list[str]:
    """The packages that the peers need and that are not installed."""
    return [name for name in PACKAGES if importlib.util.find_spec(name) is None]


def synthesize(
    frame: pd.DataFrame, book: Codebook, algorithm: str, loss: Mapping[str, float], seed: int
) -> pd.DataFrame:
    """As many synthetic rows as the frame has, under a privacy loss: pure ε or ρ-zCDP, neighbours add or remove a row.

    The seed fixes only where a value comes back inside its bin: the peers' own noise is from the operating system.
    """
    import jax
    import opendp.extras.mbi as algorithms
    import opendp.extras.mbi._mst as mst
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    jax.clear_caches()  # every fit compiles functions of its own, and gigabytes of them would be kept
    codes = pl.DataFrame({name: code.encode(frame[name]) for name, code in book.items()})
    context = dp.Context.compositor(
        data=codes.lazy(), privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(**loss)
    )
    cuts = {name: list(range(code.size - 1)) for name, code in book.items()}
    query = context.query(**loss).contingency_table(cuts=cuts, algorithm=getattr(algorithms, algorithm)())
    with mock.patch.object(mst, "prior", _a_little_less):
        table = query.release()
    table.model = _with_whole_cliques(table.model)
    drawn = table.synthesize(rows=len(frame), method="sample")
    rng = np.random.default_rng(seed)
    columns = {name: code.decode(drawn[name].to_numpy(), rng) for name, code in book.items()}
    return pd.DataFrame(columns).astype(frame.dtypes.to_dict())


def _a_little_less(epsilon: float) -> float:
    """Room for rounding: 13 equal parts of MST's budget, each one float less, add up to more than it (14 columns)."""
    return epsilon * (1 - 1e-12)


def _with_whole_cliques(model: Any) -> Any:
    """The same distribution over the junction tree's cliques, so that drawing conditions on all it should."""
    from mbi import MarkovRandomField, junction_tree

    tree, _ = junction_tree.make_junction_tree(model.domain, [set(clique) for clique in model.cliques])
    potentials = model.potentials.expand(list(tree.nodes))
    return MarkovRandomField(potentials=potentials, marginals=model.marginals, total=model.total)
