"""The model of a private reference as bytes that may be published, and back. A file may come from anybody.

It is written as exported references are: data of registered classes, never code. Whoever loads one gets a model whose
parts fit together, or an error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from dipriv import _serialization as state
from dipriv._base.registry import implementations
from dipriv._tables.fitted_columns import FittedColumn
from dipriv.errors import DiprivError, InputError
from dipriv.guarantee import check_delta, check_epsilon
from dipriv.kernels import KernelSpec, Laplace, Optimal, OptimalColumns, OptimalJoint
from dipriv.references._models.independent import Independent
from dipriv.references._models.network import Network
from dipriv.references.private import Private
from dipriv.references.protocol import PortableReference
from dipriv.release.bootstrap import BootstrapModel
from dipriv.release.rules import Rewriting
from dipriv.schema import Schema

FORMAT, FORMAT_WITH_RULES = 1, 2
MAX_MODEL = 1 << 28
"""The largest size of all arrays of a model together, in bytes."""
MAX_ROWS = 1 << 40
_KERNELS: dict[str, Any] = {of.__name__: of for of in (Optimal, OptimalColumns, OptimalJoint, Laplace)}


def dump_model(model: BootstrapModel) -> bytes:
    """The model as bytes.

    Raises
    ------
    InputError : it has a kernel or labels that cannot be written.
    """
    if type(model.kernel).__name__ not in _KERNELS:
        raise InputError("the release has a kernel of its own class, which cannot be written.", "Use dipriv.kernels.")
    rules = {} if model.rewriting is None else {"rewriting": model.rewriting}
    return state.dump(
        {
            "format": FORMAT_WITH_RULES if rules else FORMAT,
            "columns": model.columns,
            "reference": model.reference,
            "order": model.order,
            "spec": _fields(model.spec),
            "kernel": {"class": type(model.kernel).__name__, "fields": _fields(model.kernel)},
            "declared": model.declared.to_json(),
            "epsilon": model.epsilon,
            "delta": model.delta,
            "n_learned": model.n_learned,
            "n_released": model.n_released,
            "disjoint": model.disjoint,
            "found": model.found,
            "pairs": model.pairs,
            "deviations": dict(model.deviations),
            **rules,
        }
    )


def load_model(data: bytes, largest: int = MAX_MODEL) -> BootstrapModel:
    """The inverse, for bytes that may come from anybody.

    Raises
    ------
    InputError : these are not the bytes of a model, or its parts do not fit together.
    """
    try:
        content = state.load(data, largest)
        rules = content.get("rewriting")
        of_rules = isinstance(rules, Rewriting)
        if content.pop("format") != (FORMAT_WITH_RULES if of_rules else FORMAT) or of_rules != ("rewriting" in content):
            raise _not_ours()
        model = BootstrapModel(
            **{
                **content,
                "spec": Private(**content["spec"], exclusions=rules.exclusions if of_rules else ()),
                "kernel": _kernel(content["kernel"]),
                "declared": Schema.from_json(content["declared"]),
                "epsilon": check_epsilon(content["epsilon"]),
                "delta": _delta(content["delta"]),
            }
        )
        _check(model)
        _ = model.learning  # its numbers give a plan
    except InputError:
        raise
    except (DiprivError, LookupError, TypeError, AttributeError, ValueError, ArithmeticError):
        raise _not_ours() from None
    return model


def _fields(thing: Any) -> dict[str, Any]:
    """The fields of a spec; mappings of users become plain ones. Exclusions follow from the rules, and leading columns
    are those of releases with a unit, which have no model.
    """
    left_out = ("exclusions", "leading")
    found = {item.name: getattr(thing, item.name) for item in fields(thing) if item.init and item.name not in left_out}
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in found.items()}


def _delta(value: Any) -> float:
    """That of one row, which a release rounds down to the next number."""
    check_delta(value and math.nextafter(value, 1.0))
    return float(value)


def _kernel(plain: dict[str, Any]) -> KernelSpec:
    kernel: KernelSpec = _KERNELS[plain["class"]](**plain["fields"])
    return kernel


def _check(model: BootstrapModel) -> None:
    """That the parts belong together, and that no number asks for more work than a release could."""
    if not all(isinstance(column, FittedColumn) for column in model.columns):
        raise _not_ours()
    names, width = model.names, len(model.columns)
    in_order = all(type(place) is int for place in model.order) and sorted(model.order) == list(range(width))
    is_reference = isinstance(model.reference, implementations(PortableReference))
    counts = (model.n_learned, model.n_released)
    pairs = (*model.pairs, *model.spec.pairs)
    deviations = model.deviations.values()
    fits = (
        (isinstance(model.reference, Network) or (isinstance(model.reference, Independent) and width == 1))
        and is_reference
        and 0 < width == len(set(names))
        and in_order
        and all(column.codec.dims == 1 for column in model.columns)
        and model.reference.accepts([getattr(model.columns[place].codec, "states", None) for place in model.order])
        and all(type(count) is int and 0 < count <= MAX_ROWS for count in counts)
        and type(model.disjoint) is bool
        and len(model.pairs) <= width * width
        and all(isinstance(pair, tuple) and len(pair) == len({*pair} & {*names}) == 2 for pair in pairs)
        and set(model.declared) <= set(names)
        and set(model.found) <= {column.name for column in model.columns if column.labels is not None}
        and set(model.deviations) == set(names)
        and all(isinstance(one, float) and math.isfinite(one) and one >= 0 for one in deviations)
        and (model.rewriting is None or model.rewriting.learns([column.facts for column in model.columns]))
    )
    if not fits:
        raise InputError("the parts of the model do not fit together.", "Use the data sheet that dipriv wrote.")


def _not_ours() -> InputError:
    return InputError("this is not a model that dipriv wrote.", "Use the data sheet that dipriv wrote, unchanged.")
