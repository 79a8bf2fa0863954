"""Whether the numbers of a loaded object are such as dipriv writes.

Compiled loops do not check their indices, and decoding does not check its ranges: what is refused here can neither make
them read beyond an array, nor fail on a record, nor run for ever. That a kernel keeps its ε is not here: each kernel
proves it to itself, on its integers, whenever it is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow.types as pt
from numpy.typing import NDArray

from dipriv._columns import NAN, NULL
from dipriv._tables.arrow import meaning, storage_of
from dipriv._tables.fitted_columns import FittedColumn
from dipriv._tables.frames import Column
from dipriv.codecs import (
    AtomsLine,
    BinnedCodec,
    FloatBitCodes,
    GridCodes,
    LatticeCodec,
    LevelsCodec,
    MissingCodec,
    OneHotCodec,
    RankedLevelsCodec,
    RealCodec,
)
from dipriv.kernels import ColumnsKernel, InvariantChannel, JointKernel, LaplaceKernel, Transition
from dipriv.kernels._joint.counts import classes_of, table_size, total_cost
from dipriv.references import (
    Boxes,
    BucketIndex,
    Independent,
    IntegerDistribution,
    LevelsDistribution,
    Mixture,
    Network,
    Node,
    Normal,
)

MOST_STATES = 1 << 22
"""Of a column: levels, cells, or values of a table."""
MOST_CELLS = 256
"""Of a transition matrix; those that dipriv builds have at most 64."""
MOST_BITS = 8, 1 << 14
"""Of a column in the joint kernel; of all columns together."""
MOST_IN_TABLES = 1 << 21
"""Numbers in the tables of the joint kernel: those that dipriv builds have at most half of it."""
LONGEST_NUMBER = 1 << 14
"""Of whole numbers, in bits."""
LONGEST_TEXT = 1 << 16
_POWERS_OF_TEN = frozenset(10**digits for digits in range(10))
_LARGEST_LEVEL = 2.0**53


def is_cheap_to_build(of: type, values: Mapping[str, Any]) -> bool:
    """Whether it takes little to build a kernel from these fields, which have their types."""
    if of is Transition:
        weights, budget = values["weights"], values["budget"]
        short = all(map(_are_short, weights)) and _are_short(budget.as_integer_ratio())
        return short and 0 < len(weights) <= MOST_CELLS
    if of is InvariantChannel:
        return _are_short(values["masses"])
    if of is ColumnsKernel:
        return all(0 <= number < len(values["swaps"]) for number in values["which"])
    if of is JointKernel:
        weights, bits = values["weights"], values["bits"]
        if not _is_line(weights) or not 1 <= bits <= MOST_BITS[0] or not len(weights) * bits <= MOST_BITS[1]:
            return False
        if np.any(weights < 0) or weights.max() > 1 << 20:
            return False
        classes = classes_of(weights.tolist(), bits)
        short = _are_short((values["threshold"], values["inside"], values["outside"]))
        return short and max(table_size(classes), total_cost(classes)) <= MOST_IN_TABLES
    return of is not LaplaceKernel or (_is_line(values["scales"]) and _is_line(values["lattice_bits"]))


def satisfies_invariants(thing: Any) -> bool:
    """Whether an object that was just built is fit for use; parts of it are known to be."""
    rule = _RULES.get(type(thing))
    return rule is None or bool(rule(thing))


def _are_short(numbers: Iterable[int]) -> bool:
    return all(number.bit_length() <= LONGEST_NUMBER for number in numbers)


def _is_line(array: NDArray[Any], least: int = 1) -> bool:
    return array.ndim == 1 and least <= len(array) <= MOST_STATES


def _rises(array: NDArray[Any]) -> bool:
    return bool(np.all(array[1:] > array[:-1]))


def _never_falls(array: NDArray[Any], axis: int = 0) -> bool:
    return bool(np.all(np.diff(array, axis=axis) >= 0))


def _is_finite(*arrays: Any) -> bool:
    return all(np.all(np.isfinite(array)) for array in arrays)


def _is_step(whole: int, per_unit: int, dtype: np.dtype[Any]) -> bool:
    if dtype.kind == "f":
        return 1 <= whole < 1 << 63 and per_unit in _POWERS_OF_TEN
    return 1 <= whole <= int(np.iinfo(dtype).max) and per_unit == 1


def _kinds_of_missing(missing: tuple[int, ...]) -> bool:
    return len(set(missing)) == len(missing) and set(missing) <= {NULL, NAN}


# ---- columns ----


def _bits_line(line: FloatBitCodes) -> bool:
    if line.dtype not in (np.float32, np.float64):
        return False
    furthest = int(np.finfo(line.dtype).max.view(f"i{line.dtype.itemsize}"))
    return -furthest <= line.first <= line.last <= furthest


def _steps_line(line: GridCodes) -> bool:
    if not _is_step(line.whole, line.per_unit, line.dtype):
        return False
    first, last = line.first + line.origin, line.last + line.origin
    if not -(1 << 63) <= line.first <= line.last < 1 << 63 or line.origin not in (0, 1 << 63):
        return False
    if line.dtype.kind == "f":
        return line.origin == 0
    info = np.iinfo(line.dtype)
    inside = int(info.min) <= first * line.whole and last * line.whole <= int(info.max)
    return inside and (line.origin == 0 or line.dtype == np.uint64)


def _mixed_line(line: AtomsLine) -> bool:
    if not _is_line(line.atoms, 0) or line.shifts.shape != (len(line.atoms) + 1,):
        return False
    return _is_finite(line.atoms, line.shifts) and _rises(line.atoms) and _rises(line.shifts)


def _real_codec(codec: RealCodec) -> bool:
    exponent = math.frexp(codec.scale)
    return codec.low < codec.high and codec.floor < math.inf and exponent[0] == 0.5 and -100 < exponent[1] < 2


def _lattice_codec(codec: LatticeCodec) -> bool:
    if not _is_step(codec.whole, codec.per_unit, codec.dtype) or not codec.low < math.inf:
        return False
    if codec.dtype.kind == "f":
        return codec.origin == 0
    return int(np.iinfo(codec.dtype).min) <= codec.origin <= int(np.iinfo(codec.dtype).max)


def _levels_codec(codec: LevelsCodec | OneHotCodec | RankedLevelsCodec) -> bool:
    levels = codec.levels
    return _is_line(levels) and _is_finite(levels) and _rises(levels) and _kinds_of_missing(codec.missing)


def _ranks_codec(codec: RankedLevelsCodec) -> bool:
    return _levels_codec(codec) and np.array_equal(np.sort(codec.order), np.arange(len(codec.levels)))


def _nulls_codec(codec: MissingCodec) -> bool:
    finite = math.isfinite(codec.low) and 0 < codec.width < math.inf
    inside = isinstance(codec.inner, LatticeCodec | RealCodec)
    return finite and inside and bool(codec.missing) and _kinds_of_missing(codec.missing)


def _cells_codec(codec: BinnedCodec) -> bool:
    starts, sizes = codec.starts, codec.sizes
    if not _is_line(starts) or sizes.shape != starts.shape or not _rises(starts) or np.any(sizes == 0):
        return False
    gaps = starts[1:].astype(np.uint64) - starts[:-1].astype(np.uint64)  # modulo 2^64, as all of these sums
    inside = codec.line.first <= int(starts[0]) and int(starts[-1]) + int(sizes[-1]) - 1 <= codec.line.last
    return inside and bool(np.all(sizes[:-1] <= gaps)) and _kinds_of_missing(codec.missing)


def _column(column: Column) -> bool:
    plain = column.labels is None and column.label_values is None and len(column.name) <= LONGEST_TEXT
    return plain and column.storage == storage_of(column.name, column.arrow_type)


def _fitted_column(column: FittedColumn) -> bool:
    storage = column.facts.storage
    if _dtype_of(column.codec) != storage.dtype:
        return False
    if (storage.family == "label") != (column.labels is not None):
        return False
    return column.labels is None or _labels(column)


def _labels(column: FittedColumn) -> bool:
    """The labels are those of the column's type, all different, and the codec gives no number beyond them."""
    labels, arrow_type, levels = column.labels, column.facts.arrow_type, getattr(column.codec, "levels", None)
    if levels is None or labels is None or labels.null_count:
        return False
    text = meaning(arrow_type) == "text"
    index = arrow_type.index_type.to_pandas_dtype() if pt.is_dictionary(arrow_type) else np.int32
    if not (meaning(labels.type) == "text" if text else labels.type == arrow_type.value_type):
        return False
    distinct = len(labels.unique()) == len(labels) <= int(np.iinfo(index).max) + 1
    return distinct and int(levels[0]) >= 0 and int(levels[-1]) < max(1, len(labels))


def _dtype_of(codec: Any) -> np.dtype[Any]:
    """Of the numbers that a codec gives back."""
    if isinstance(codec, MissingCodec):
        return _dtype_of(codec.inner)
    if isinstance(codec, BinnedCodec):
        return _dtype_of(codec.line)
    found: np.dtype[Any] = codec.dtype if hasattr(codec, "dtype") else codec.levels.dtype
    return found


# ---- references ----


def _integer_law(law: IntegerDistribution) -> bool:
    table = law.cumulative
    if not _is_line(table, 2) or abs(law.start) > _LARGEST_LEVEL:
        return False
    return _is_finite(table) and _never_falls(table) and table[0] >= 0 and table[-1] == 1


def _levels_law(law: LevelsDistribution) -> bool:
    p = law.probabilities
    return _is_line(p) and _is_finite(p, law.low) and bool(np.all(p >= 0)) and abs(p.sum() - 1) < 1e-6


def _mixture(law: Mixture) -> bool:
    return len(law.atoms) <= MOST_STATES and _is_finite(list(law.atoms), list(law.atoms.values()))


def _normal(law: Normal) -> bool:
    width = len(law.mean) if _is_line(law.mean) else 0
    if not width or law.root.shape != (width, width) or not _is_finite(law.mean, law.root):
        return False
    return not np.any(np.triu(law.root, 1)) and bool(np.all(np.diag(law.root) > 0))


def _cubes(boxes: Boxes) -> bool:
    top, edges, rest = boxes.top, boxes.edges, boxes.rest
    if top.ndim != 1 or not len(top) or edges.shape != (1,) or rest.ndim != 3 or rest.shape[::2] != (len(top), 2):
        return False
    if boxes.starts.shape != (2,) or boxes.starts.tolist() != [0, len(top)] or not _is_finite(top, edges, rest):
        return False
    return edges[0] <= top[0] and _never_falls(top) and bool(np.all(rest[:, :, 0] <= rest[:, :, 1]))


def _guide(guide: BucketIndex) -> bool:
    """A guide is made anew from the boxes that it leads to; here only that it is a guide."""
    return guide.starts.ndim == 1


def _node(node: Node) -> bool:
    groups, tables = node.group_of, node.tables
    if not _is_line(groups) or node.inner.shape != groups.shape or tables.ndim != 2 or not len(tables):
        return False
    steps = np.diff(groups, prepend=-1)
    if groups[0] != 0 or np.any((steps != 0) & (steps != 1)) or tables.shape[1] != groups[-1] + 2:
        return False
    if not _is_finite(node.inner, tables) or np.any((node.inner < 0) | (node.inner > 1)):
        return False
    return _never_falls(tables, axis=1) and bool(np.all(tables[:, 0] == 0) and np.all(tables[:, -1] == 1))


def _network(network: Network) -> bool:
    """Parents come first, and each node has a table for each joint group of its parents."""
    for number, node in enumerate(network.nodes):
        if not all(0 <= parent < number for parent in node.parents):
            return False
        if math.prod(network.nodes[parent].groups for parent in node.parents) != len(node.tables):
            return False
    return bool(network.nodes)


def _independent(reference: Independent) -> bool:
    return bool(reference.laws)


_RULES: dict[type, Callable[[Any], bool]] = {
    FloatBitCodes: _bits_line,
    BinnedCodec: _cells_codec,
    Column: _column,
    Boxes: _cubes,
    FittedColumn: _fitted_column,
    BucketIndex: _guide,
    Independent: _independent,
    IntegerDistribution: _integer_law,
    LatticeCodec: _lattice_codec,
    LevelsCodec: _levels_codec,
    LevelsDistribution: _levels_law,
    AtomsLine: _mixed_line,
    Mixture: _mixture,
    Network: _network,
    Node: _node,
    Normal: _normal,
    MissingCodec: _nulls_codec,
    OneHotCodec: _levels_codec,
    RankedLevelsCodec: _ranks_codec,
    RealCodec: _real_codec,
    GridCodes: _steps_line,
}
