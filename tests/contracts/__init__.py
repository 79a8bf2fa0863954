"""Contracts: every codec, kernel and reference passes one shared suite, those of contributors included."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType


def contributions() -> list[ModuleType]:
    """The modules beside the suites: importing one registers what it contributes, as importing a package would."""
    names = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("test_")]
    return [importlib.import_module(f"{__name__}.{name}") for name in names]
