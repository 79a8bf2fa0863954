"""The packages that only a report needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dipriv.errors import InputError


@contextmanager
def needed() -> Iterator[None]:
    """Turn the ImportError of a missing package into an error that names the extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise InputError(
            f"a report needs the package {error.name}, which is not installed.", 'Run pip install "dipriv[report]".'
        ) from None


def check_extras() -> None:
    """Refuse beforehand what could not be drawn later."""
    with needed():
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
        import statsmodels  # noqa: F401
