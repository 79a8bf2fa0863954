"""Packages that only a part of dipriv needs: where one is missing, the error names the extra that brings it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dipriv.errors import MissingDependencyError


@contextmanager
def needs_extra(extra: str, what: str) -> Iterator[None]:
    """Turn the ImportError of a missing package into an error that names the extra to install.

    Modules of dipriv itself are not optional: their ImportError stays what it is.

    >>> with needs_extra("ledger", "a ledger"):
    ...     import a_package_that_nobody_has
    Traceback (most recent call last):
    ...
    dipriv.errors.MissingDependencyError: a ledger needs the package a_package_that_nobody_has, which is not installed.
    Run pip install "dipriv[ledger]".
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package == "dipriv" or isinstance(error, MissingDependencyError):
            raise
        raise MissingDependencyError(
            f"{what} needs the package {package}, which is not installed.", f'Run pip install "dipriv[{extra}]".'
        ) from None
