"""dipriv: publish a private table row by row, nearly the same distribution, under differential privacy."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dipriv import audit, codecs, kernels, local, references
    from dipriv.errors import DiprivError, DisclosureError, InputError, ReferenceRowsError, SchemaError
    from dipriv.estimator import DIP
    from dipriv.guarantee import Guarantee
    from dipriv.ledger import BudgetError, Ledger, LedgerError
    from dipriv.release import Release, infer_schema, privatize
    from dipriv.schema import Categorical, Continuous, Datetime, Discrete, Mixed, Schema
    from dipriv.split import Split

__version__ = "0.1.0.dev0"

_HOMES = {
    "BudgetError": "ledger",
    "DIP": "estimator",
    "Categorical": "schema",
    "Continuous": "schema",
    "Datetime": "schema",
    "DiprivError": "errors",
    "Discrete": "schema",
    "DisclosureError": "errors",
    "Guarantee": "guarantee",
    "InputError": "errors",
    "Ledger": "ledger",
    "LedgerError": "ledger",
    "Mixed": "schema",
    "ReferenceRowsError": "errors",
    "Release": "release",
    "Schema": "schema",
    "SchemaError": "errors",
    "Split": "split",
    "infer_schema": "release",
    "privatize": "release",
}
_MODULES = ("audit", "codecs", "kernels", "local", "references")

__all__ = [
    "DIP",
    "BudgetError",
    "Categorical",
    "Continuous",
    "Datetime",
    "DiprivError",
    "DisclosureError",
    "Discrete",
    "Guarantee",
    "InputError",
    "Ledger",
    "LedgerError",
    "Mixed",
    "ReferenceRowsError",
    "Release",
    "Schema",
    "SchemaError",
    "Split",
    "audit",
    "codecs",
    "infer_schema",
    "kernels",
    "local",
    "privatize",
    "references",
]


def __getattr__(name: str) -> Any:
    """Load on first use, so that `import dipriv` is quick."""
    if name in _MODULES:
        return import_module(f"dipriv.{name}")
    if name in _HOMES:
        return getattr(import_module(f"dipriv.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'dipriv' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
