"""Programs that need no pandas start half a second sooner without it."""

from __future__ import annotations

import sys

import pyarrow as pa


class _NoPandas:
    """A finder of modules that refuses pandas."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is left out", name=name)


def leave_pandas_out() -> None:
    """Let Arrow find no pandas, if nobody has imported it: else Arrow does so with the first array that it makes.

    For processes of our own alone: Arrow takes a series of pandas for a list from then on, until somebody asks Arrow
    for one.
    """
    if "pandas" in sys.modules:
        return
    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(_NoPandas)
