"""Objects <-> JSON and arrays. Only registered classes are rebuilt, and scipy distributions by the name of a family."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from dipriv._base.registry import find_serializable, is_serializable
from dipriv._serialization.archive import MAX_BYTES, Arrays, as_dtype, pack, unpack
from dipriv._serialization.fields import check_fields
from dipriv._serialization.types import type_from_plain, type_to_plain
from dipriv.errors import DiprivError, InputError
from dipriv.guarantee.guarantee import Guarantee

MAX_MANIFEST = 1 << 25
"""The largest size of the JSON, in bytes."""
MAX_ENTRIES = 1 << 21
"""The largest number of commas and brackets in the JSON."""
MAX_DIGITS = 4000
"""The most decimal digits of a whole number: reading takes the square of it, and proofs about kernels as much."""
MAX_PARAMETERS = 8
"""The most parameters of a distribution of scipy.stats."""
SLOW_FAMILIES = frozenset({"ksone", "kstwo", "ncf", "nct", "ncx2", "rice"})
"""Families of scipy.stats whose functions are sums or searches that hardly end for some parameters."""


def dump(thing: Any) -> bytes:
    """An object as the bytes of an .npz archive."""
    arrays: Arrays = {}
    plain = _plain(thing, arrays)
    return pack({"manifest": np.frombuffer(json.dumps(plain).encode(), dtype=np.uint8), **arrays})


def load(data: bytes, largest: int = MAX_BYTES) -> Any:
    """The inverse of `dump`, for classes that are registered: those of the modules that are imported.

    Raises
    ------
    InputError : the file is not as `dump` writes it, or its arrays have more than `largest` bytes together.
    """
    try:
        arrays = unpack(data, largest)
        return _rebuild(_parse(arrays.pop("manifest").tobytes()), arrays)
    except DiprivError:
        raise
    except Exception:  # any failure means that the file is not as `dump` writes it
        raise InputError("this is not a file that dipriv exported.", "Export it again with export_local.") from None


def _parse(manifest: bytes) -> Any:
    if len(manifest) > MAX_MANIFEST or sum(map(manifest.count, (b",", b"[", b"{"))) > MAX_ENTRIES:
        raise ValueError("the manifest is too large")
    return json.loads(manifest, parse_int=_whole)


def _whole(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
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
    if is_serializable(type(thing)):
        values = {item.name: _plain(getattr(thing, item.name), arrays) for item in fields(thing) if item.init}
        return {"class": type(thing).__name__, "fields": values}
    if hasattr(thing, "dist") and hasattr(thing, "kwds"):
        _family(thing.dist.name)
        return {"law": thing.dist.name, "args": _plain(thing.args, arrays), "kwds": _plain(thing.kwds, arrays)}
    raise InputError(
        f"objects of type {type(thing).__name__} cannot be exported.",
        "Use a distribution of scipy.stats with plain parameters.",
    )


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
    if plain["class"] == "Guarantee":  # as format 2 of exported references has it
        return Guarantee.from_dict({name: _rebuild(value, arrays) for name, value in plain["fields"].items()})
    registered = find_serializable(plain["class"])
    of = registered.of
    given = {name: value for name, value in plain["fields"].items() if name not in registered.former_fields}
    values = {name: _rebuild(value, arrays) for name, value in given.items()}
    check_fields(of, values)
    if not registered.is_cheap_to_build(values):
        raise InputError(f"the file's {of.__name__} is larger than dipriv writes it.", "Export it again.")
    built = of(**values)
    if hasattr(built, "check_invariants"):
        built.check_invariants()
    return built


def _distribution(plain: dict[str, Any], arrays: Arrays) -> Any:
    """A frozen distribution with plain parameters, that has quantiles."""
    family = _family(plain["law"])
    args, kwds = _rebuild(plain["args"], arrays), _rebuild(plain["kwds"], arrays)
    given = (*args, *kwds.values())
    if len(given) > MAX_PARAMETERS or not all(type(one) in (int, float) and abs(one) < 1e300 for one in given):
        raise ValueError("not the parameters of a distribution")
    distribution = family(*args, **kwds)
    with np.errstate(all="ignore"):
        quantiles = distribution.ppf([2.0**-53, 0.25, 0.5, 0.75, 1 - 2.0**-53])
        orderly = np.isfinite(quantiles[2]) and np.all(quantiles[1:] >= quantiles[:-1])
    if not orderly:
        raise InputError(f"the file's {plain['law']!r} has parameters that it cannot have.", "Export it again.")
    return distribution


def _family(name: Any) -> Any:
    """A continuous family of scipy.stats, by name, whose functions are quick."""
    from scipy import stats

    family = getattr(stats, name, None) if isinstance(name, str) and name.isidentifier() else None
    if not isinstance(family, stats.rv_continuous):
        raise InputError("the file names a distribution that scipy.stats does not have.", "Export it again.")
    slow = type(family)._cdf is stats.rv_continuous._cdf or type(family)._ppf is stats.rv_continuous._ppf
    if slow or name in SLOW_FAMILIES:
        raise InputError(
            f"the distribution {name!r} takes too long for an exported file: its quantiles are searched one by one.",
            "Use a distribution with a quantile function of its own, such as norm, gamma or beta.",
        )
    return family


_FORMS: dict[str, Callable[[dict[str, Any], Arrays], Any]] = {
    "array": lambda plain, arrays: arrays[plain["array"]],
    "arrow": lambda plain, arrays: type_from_plain(plain),
    "args kwds law": _distribution,
    "class fields": _object,
    "dtype": lambda plain, arrays: as_dtype(plain["dtype"]),
    "guarantee": lambda plain, arrays: Guarantee.from_dict(plain["guarantee"]),
    "labels type": _labels,
    "pairs": _pairs,
    "ratio": _ratio,
    "tuple": _tuple,
}
