"""Fitted objects <-> plain data: JSON and numeric arrays in one file, never code.

Only the classes listed in `_CLASSES` can be rebuilt, and scipy laws only by the name of a scipy.stats family, so
that a file from elsewhere is data and nothing else.
"""

from __future__ import annotations

import io
import json
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from dipriv import codecs, kernels, references, schema
from dipriv.columns import FittedColumn
from dipriv.errors import InputError
from dipriv.guarantee import Guarantee
from dipriv.tables import Column

_CLASSES: dict[str, type[Any]] = {
    item.__name__: item
    for item in (
        codecs.BitsLine,
        codecs.CellsCodec,
        codecs.LatticeCodec,
        codecs.LevelsCodec,
        codecs.MixedLine,
        codecs.NullsCodec,
        codecs.OneHotCodec,
        codecs.RanksCodec,
        codecs.RealCodec,
        codecs.StepsLine,
        kernels.ColumnsKernel,
        kernels.JointKernel,
        kernels.LaplaceKernel,
        kernels.Swap,
        kernels.Transition,
        references.ContinuousLaw,
        references.Cubes,
        references.Guide,
        references.Independent,
        references.IntegerLaw,
        references.LevelsLaw,
        references.Mixture,
        references.Network,
        references.Node,
        references.Normal,
        schema.Categorical,
        schema.Continuous,
        schema.Datetime,
        schema.Discrete,
        schema.Mixed,
        schema.Storage,
        Column,
        FittedColumn,
        Guarantee,
    )
}


def dump(thing: Any) -> bytes:
    """An object as the bytes of an .npz archive."""
    arrays: dict[str, np.ndarray] = {}
    plain = _plain(thing, arrays)
    buffer = io.BytesIO()
    manifest = np.frombuffer(json.dumps(plain).encode(), dtype=np.uint8)
    np.savez_compressed(buffer, allow_pickle=False, manifest=manifest, **arrays)
    return buffer.getvalue()


def load(data: bytes) -> Any:
    """The inverse of `dump`; refuses anything it does not know."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        return _rebuild(json.loads(arrays["manifest"].tobytes()), arrays)
    except InputError:
        raise
    except Exception:
        raise InputError("this is not a file that dipriv exported.", "Export it again with export_local.") from None


def _plain(thing: Any, arrays: dict[str, np.ndarray]) -> Any:
    if thing is None or isinstance(thing, (bool, int, float, str)):
        return thing
    if isinstance(thing, np.generic):
        return thing.item()
    if isinstance(thing, np.ndarray):
        arrays[f"a{len(arrays)}"] = thing
        return {"array": f"a{len(arrays) - 1}"}
    if isinstance(thing, Fraction):
        return {"ratio": [thing.numerator, thing.denominator]}
    if isinstance(thing, np.dtype):
        return {"dtype": thing.str}
    if isinstance(thing, tuple | list):
        return {"tuple": [_plain(item, arrays) for item in thing]}
    if isinstance(thing, dict):
        return {"pairs": [[_plain(k, arrays), _plain(v, arrays)] for k, v in thing.items()]}
    if isinstance(thing, pa.DataType):
        return {"arrow_type": pa.schema([("x", thing)]).serialize().to_pybytes().hex()}
    if isinstance(thing, pa.Array):
        return {"labels": thing.to_pylist(), "type": _plain(thing.type, arrays)}
    if is_dataclass(thing) and type(thing).__name__ in _CLASSES:
        values = {item.name: _plain(getattr(thing, item.name), arrays) for item in fields(thing) if item.init}
        return {"class": type(thing).__name__, "fields": values}
    if hasattr(thing, "dist") and hasattr(thing, "kwds"):
        return {"law": thing.dist.name, "args": _plain(thing.args, arrays), "kwds": _plain(thing.kwds, arrays)}
    raise InputError(f"a {type(thing).__name__} cannot be exported.", "Use a law of scipy.stats with plain parameters.")


def _rebuild(plain: Any, arrays: dict[str, np.ndarray]) -> Any:
    if not isinstance(plain, dict):
        return plain
    if "array" in plain:
        return arrays[plain["array"]]
    if "ratio" in plain:
        return Fraction(*plain["ratio"])
    if "dtype" in plain:
        return np.dtype(plain["dtype"])
    if "tuple" in plain:
        return tuple(_rebuild(item, arrays) for item in plain["tuple"])
    if "pairs" in plain:
        return {_rebuild(k, arrays): _rebuild(v, arrays) for k, v in plain["pairs"]}
    if "arrow_type" in plain:
        return pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(plain["arrow_type"]))).field(0).type
    if "labels" in plain:
        return pa.array(plain["labels"], _rebuild(plain["type"], arrays))
    if "law" in plain:
        return _law(plain["law"])(*_rebuild(plain["args"], arrays), **_rebuild(plain["kwds"], arrays))
    values = {name: _rebuild(value, arrays) for name, value in plain["fields"].items()}
    return _CLASSES[plain["class"]](**values)


def _law(name: str) -> Any:
    from scipy import stats

    family = getattr(stats, name)
    if not isinstance(family, stats.rv_continuous | stats.rv_discrete):
        raise InputError("the file names a law that scipy.stats does not have.", "Export it again.")
    return family
