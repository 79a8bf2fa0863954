"""Folders that can be written to, and files that are written atomically."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dipriv.errors import InputError


def check_folder(out: Path) -> None:
    """The folder can be made and written to."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=out):
            pass
    except OSError as error:
        raise InputError(f"{out} cannot be written to ({error.strerror}).", "Choose another folder: --out.") from None


@contextmanager
def whole_file(file: Path) -> Iterator[Path]:
    """A file that appears whole under its name, or not at all."""
    part = file.with_name(f".{file.stem}.part{file.suffix}")
    try:
        yield part
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
