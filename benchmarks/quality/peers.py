"""OpenDP's MST and AIM on a pandas frame: the columns coded in public, the synthetic rows brought back.

Every column is given to the peers as whole numbers 0 to k - 1 with public cuts between them, which spares them the cell
for nulls that OpenDP adds to columns with keys. Labels are taken as public, as dipriv takes them; a wide numeric column
gets public bins, and a value comes back uniform inside its bin.

OpenDP 0.16 requires mbi 1.1.0, whose `synthetic_data` draws badly (its own repository, pull request 145): rounding ties
columns together that the model holds independent, and it conditions on the measured cliques instead of those of the
junction tree. Both are avoided here, in the peers' favour: rows are sampled, and the model is given whole cliques.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pandas as pd

Codes = npt.NDArray[np.int64]
PACKAGES = ("opendp", "mbi", "jax", "polars", "randomgen")


@dataclass(frozen=True)
class Levels:
    """Labels or few numbers, in order; they are taken as public."""

    values: tuple[Any, ...]

    @classmethod
    def of(cls, column: pd.Series[Any]) -> Levels:
        return cls(tuple(sorted(column.unique().tolist())))

    @property
    def size(self) -> int:
        return len(self.values)

    def encode(self, column: pd.Series[Any]) -> Codes:
        return np.asarray(pd.Categorical(column, categories=list(self.values)).codes, dtype=np.int64)

    def decode(self, codes: Codes, rng: np.random.Generator) -> pd.Series[Any]:
        return pd.Series(list(self.values)).take(codes).reset_index(drop=True)


@dataclass(frozen=True)
class Bins:
    """A wide numeric column: bins [a, b) between public edges, one more cell for `null`; whole numbers stay whole."""

    edges: tuple[float, ...]
    whole: bool = True
    null: Any = None

    @property
    def size(self) -> int:
        return len(self.edges) - 1 + (self.null is not None)

    def encode(self, column: pd.Series[Any]) -> Codes:
        numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        last = len(self.edges) - 2
        inside = np.clip(np.searchsorted(self.edges, numbers, side="right") - 1, 0, last)
        return np.where(np.isnan(numbers), last + 1, inside)

    def decode(self, codes: Codes, rng: np.random.Generator) -> pd.Series[Any]:
        last = len(self.edges) - 2
        left, right = (np.asarray(self.edges)[np.minimum(codes, last) + step] for step in (0, 1))
        drawn = rng.integers(left.astype(np.int64), right.astype(np.int64)) if self.whole else rng.uniform(left, right)
        if self.null is None:
            return pd.Series(drawn)
        if isinstance(self.null, str):  # numbers kept as text
            return pd.Series(np.where(codes > last, self.null, drawn.astype(str).astype(object)))
        return pd.Series(np.where(codes > last, np.nan, drawn))


Codebook = Mapping[str, Levels | Bins]


def lacking() -> list[str]:
    """The packages that the peers need and that are not installed."""
    return [name for name in PACKAGES if importlib.util.find_spec(name) is None]


def codebook(frame: pd.DataFrame, bins: Mapping[str, Bins]) -> Codebook:
    """Bins where they are given, the levels of the column elsewhere."""
    return {name: bins[name] if name in bins else Levels.of(frame[name]) for name in map(str, frame.columns)}


def synthesize(frame: pd.DataFrame, book: Codebook, algorithm: str, epsilon: float, seed: int) -> pd.DataFrame:
    """As many synthetic rows as the frame has; pure ε, neighbours add or remove a row.

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
        data=codes.lazy(), privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(epsilon=epsilon)
    )
    cuts = {name: list(range(code.size - 1)) for name, code in book.items()}
    query = context.query(epsilon=epsilon).contingency_table(cuts=cuts, algorithm=getattr(algorithms, algorithm)())
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
