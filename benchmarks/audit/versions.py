"""Which versions of packages an environment has."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterable


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Python's, and those of the packages that are installed."""
    found = {"Python": platform.python_version()}
    for name in packages:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
