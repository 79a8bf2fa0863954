"""Objects <-> JSON and arrays. Only listed classes can be rebuilt, and scipy laws only by the name of a family."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from dipriv import codecs, kernels, references, schema
from dipriv._serialization.archive import LARGEST, Arrays, as_dtype, pack, unpack
from dipriv._serialization.fields import check_fields
from dipriv._serialization.invariants import is_cheap_to_build, satisfies_invariants
from dipriv._serialization.types import type_from_plain, type_to_plain
from dipriv._tables.fitted_columns import FittedColumn
from dipriv._tables.frames import Column
from dipriv.errors import DiprivError, InputError
from dipriv.guarantee.guarantee import Guarantee

LARGEST_MANIFEST, MOST_ENTRIES, MOST_DIGITS = 1 << 25, 1 << 21, 4000
"""Of the JSON: its bytes, its commas and brackets, and the digits of a whole number in it."""
SLOW_LAWS = frozenset({"ksone", "kstwo", "ncf", "nct", "ncx2", "rice"})
"""Their functions are sums or searches, which for some parameters hardly end."""
_MOST_PARAMETERS = 8
_CLASSES: dict[str, type[Any]] = {
    item.__name__: item
    for item in (
        codecs.FloatBitCodes,
        codecs.BinnedCodec,
        codecs.LatticeCodec,
        codecs.LevelsCodec,
        codecs.AtomsLine,
        codecs.MissingCodec,
        codecs.OneHotCodec,
        codecs.RankedLevelsCodec,
        codecs.RealCodec,
        codecs.GridCodes,
        kernels.ColumnsKernel,
        kernels.JointKernel,
        kernels.LaplaceKernel,
        kernels.InvariantChannel,
        kernels.Transition,
        references.ContinuousDistribution,
        references.Boxes,
        references.BucketIndex,
        references.Independent,
        references.IntegerDistribution,
        references.LevelsDistribution,
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
    )
}

FORMER_NAMES = {
    "BitsLine": "FloatBitCodes",
    "CellsCodec": "BinnedCodec",
    "ContinuousLaw": "ContinuousDistribution",
    "Cubes": "Boxes",
    "Guide": "BucketIndex",
    "IntegerLaw": "IntegerDistribution",
    "LevelsLaw": "LevelsDistribution",
    "MixedLine": "AtomsLine",
    "NullsCodec": "MissingCodec",
    "RanksCodec": "RankedLevelsCodec",
    "StepsLine": "GridCodes",
    "Swap": "InvariantChannel",
}
"""What format 2 of exported references called these classes."""


def dump(thing: Any) -> bytes:
    """An object as the bytes of an .npz archive."""
    arrays: Arrays = {}
    plain = _plain(thing, arrays)
    return pack({"manifest": np.frombuffer(json.dumps(plain).encode(), dtype=np.uint8), **arrays})


def load(data: bytes, largest: int = LARGEST) -> Any:
    """The inverse of `dump`; refuses anything it does not know, and arrays of more than `largest` bytes together."""
    try:
        arrays = unpack(data, largest)
        return _rebuild(_parse(arrays.pop("manifest").tobytes()), arrays)
    except DiprivError:
        raise
    except Exception:  # whatever fails, it fails because the file is not as `dump` writes it
        raise InputError("this is not a file that dipriv exported.", "Export it again with export_local.") from None


def _parse(manifest: bytes) -> Any:
    if len(manifest) > LARGEST_MANIFEST or sum(map(manifest.count, (b",", b"[", b"{"))) > MOST_ENTRIES:
        raise ValueError("the manifest is too large")
    return json.loads(manifest, parse_int=_whole)


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:  # reading takes the square of it
        raise ValueError("a whole number is too long")
    return int(digits)


def _plain(thing: Any, arrays: Arrays) -> Any:
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
        return type_to_plain(thing)
    if isinstance(thing, pa.Array):
        return {"labels": _stored(thing).to_pylist(), "type": type_to_plain(thing.type)}
    if isinstance(thing, Guarantee):
        return {"guarantee": thing.to_dict()}
    if is_dataclass(thing) and type(thing).__name__ in _CLASSES:
        values = {item.name: _plain(getattr(thing, item.name), arrays) for item in fields(thing) if item.init}
        return {"class": type(thing).__name__, "fields": values}
    if hasattr(thing, "dist") and hasattr(thing, "kwds"):
        _family(thing.dist.name)
        return {"law": thing.dist.name, "args": _plain(thing.args, arrays), "kwds": _plain(thing.kwds, arrays)}
    raise InputError(f"a {type(thing).__name__} cannot be exported.", "Use a law of scipy.stats with plain parameters.")


def _stored(labels: pa.Array) -> pa.Array:
    """Labels as texts or numbers."""
    if pt.is_temporal(labels.type):
        return labels.view(pa.int32() if labels.type.bit_width == 32 else pa.int64())
    if pt.is_decimal(labels.type):
        raise InputError("labels that are decimal numbers cannot be exported.", "Make them texts first.")
    return labels


def _rebuild(plain: Any, arrays: Arrays) -> Any:
    if plain is None or isinstance(plain, (bool, int, float)):
        return plain
    if isinstance(plain, str):
        plain.encode()  # what cannot be written is no text
        return plain
    form = "arrow" if "arrow" in plain else " ".join(sorted(plain))
    return _FORMS[form](plain, arrays)


def _ratio(plain: dict[str, Any], arrays: Arrays) -> Fraction:
    above, below = plain["ratio"]
    if type(above) is not int or type(below) is not int:  # a text such as 1e999999999 would be worked out
        raise TypeError("not a ratio of whole numbers")
    return Fraction(above, below)


def _tuple(plain: dict[str, Any], arrays: Arrays) -> tuple[Any, ...]:
    if not isinstance(plain["tuple"], list):
        raise TypeError("not a list")
    return tuple(_rebuild(item, arrays) for item in plain["tuple"])


def _pairs(plain: dict[str, Any], arrays: Arrays) -> dict[Any, Any]:
    found = {_rebuild(k, arrays): _rebuild(v, arrays) for k, v in plain["pairs"]}
    if len(found) < len(plain["pairs"]):
        raise ValueError("two of one name")
    return found


def _labels(plain: dict[str, Any], arrays: Arrays) -> pa.Array:
    arrow_type = type_from_plain(plain["type"])
    if pt.is_dictionary(arrow_type) or pt.is_decimal(arrow_type):
        raise ValueError("not a type of labels")
    empty = pa.array([], arrow_type)
    return pa.array(plain["labels"], _stored(empty).type).view(arrow_type)


def _object(plain: dict[str, Any], arrays: Arrays) -> Any:
    values = {name: _rebuild(value, arrays) for name, value in plain["fields"].items()}
    if plain["class"] == "Guarantee":  # as format 2 of exported references has it
        return Guarantee.from_dict(values)
    of = _CLASSES[FORMER_NAMES.get(plain["class"], plain["class"])]
    check_fields(of, values)
    if not is_cheap_to_build(of, values):
        raise _unsound(of)
    built = of(**values)
    if not satisfies_invariants(built):
        raise _unsound(of)
    # a guide that leads beyond its boxes would do so unseen
    return replace(built, guide=references.BucketIndex.over(built.top)) if of is references.Boxes else built


def _unsound(of: type) -> InputError:
    return InputError(f"the file's {of.__name__} has numbers or words that dipriv does not write.", "Export it again.")


def _law(plain: dict[str, Any], arrays: Arrays) -> Any:
    """A frozen law with plain parameters, that has quantiles."""
    family = _family(plain["law"])
    args, kwds = _rebuild(plain["args"], arrays), _rebuild(plain["kwds"], arrays)
    given = (*args, *kwds.values())
    if len(given) > _MOST_PARAMETERS or not all(type(one) in (int, float) and abs(one) < 1e300 for one in given):
        raise ValueError("not the parameters of a law")
    law = family(*args, **kwds)
    with np.errstate(all="ignore"):
        quantiles = law.ppf([2.0**-53, 0.25, 0.5, 0.75, 1 - 2.0**-53])
        orderly = np.isfinite(quantiles[2]) and np.all(quantiles[1:] >= quantiles[:-1])
    if not orderly:
        raise InputError(f"the file's law {plain['law']!r} has parameters that it cannot have.", "Export it again.")
    return law


def _family(name: Any) -> Any:
    """A continuous family of scipy.stats, by name, whose functions are quick."""
    from scipy import stats

    family = getattr(stats, name, None) if isinstance(name, str) and name.isidentifier() else None
    if not isinstance(family, stats.rv_continuous):
        raise InputError("the file names a law that scipy.stats does not have.", "Export it again.")
    slow = type(family)._cdf is stats.rv_continuous._cdf or type(family)._ppf is stats.rv_continuous._ppf
    if slow or name in SLOW_LAWS:
        raise InputError(
            f"the law {name!r} takes too long for a file that travels: its quantiles are searched for one by one.",
            "Use a law with a quantile function of its own, such as norm, gamma or beta.",
        )
    return family


_FORMS: dict[str, Callable[[dict[str, Any], Arrays], Any]] = {
    "array": lambda plain, arrays: arrays[plain["array"]],
    "arrow": lambda plain, arrays: type_from_plain(plain),
    "args kwds law": _law,
    "class fields": _object,
    "dtype": lambda plain, arrays: as_dtype(plain["dtype"]),
    "guarantee": lambda plain, arrays: Guarantee.from_dict(plain["guarantee"]),
    "labels type": _labels,
    "pairs": _pairs,
    "ratio": _ratio,
    "tuple": _tuple,
}
