"""Errors while rows are read or written, by kind and place: messages of Arrow and of the system may hold cells."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import pyarrow as pa

from dipriv.errors import DiprivError, InputError, SchemaError, StorageError

BLOCK_BYTES = 1 << 23
"""Of a CSV file, read at once: a row must fit."""


@contextmanager
def translate_errors(
    name: str,
    kinds: tuple[type[Exception], ...] = (Exception,),
    remedy: str = "Repair the file, or say its format with format=...",
    command: str = "Repair the file, or say its format with --format.",
    fault: str | None = None,
) -> Iterator[None]:
    """Turn errors of Arrow, of the system and of these kinds into errors of dipriv that show no cell.

    Types that other packages registered with Arrow may raise anything, so by default every error is translated.
    Without a `fault`, the error's text says what went wrong.
    """
    try:
        yield
    except (DiprivError, BrokenPipeError):  # whoever reads the standard output has enough
        raise
    except MemoryError:
        raise StorageError(f"{name}: it does not fit the memory of this machine.", "Give fewer rows.") from None
    except OSError as error:
        if error.errno:
            raise StorageError(
                f"{name}: {os.strerror(error.errno)}.", "Check the file, its folder and the space on the disk."
            ) from None
        raise InputError(f"{name}: {fault or _plain(str(error))}.", remedy, command=command) from None
    except (pa.ArrowException, UnicodeError, *kinds) as error:
        raise InputError(f"{name}: {fault or _plain(str(error))}.", remedy, command=command) from None


def translate_write_errors(name: str) -> AbstractContextManager[None]:
    """The same for errors while a file is written."""
    remedy = "Write another format, such as .arrow."
    return translate_errors(name, remedy=remedy, command=remedy, fault="the rows cannot be written in this format")


def _plain(text: str) -> str:
    """What went wrong, by kind and place: the original message may hold cells."""
    if re.search(r"utf-?8", text, re.IGNORECASE):
        return "it is not in UTF-8"
    if re.search(r"parquet|magic|footer|thrift", text, re.IGNORECASE):
        return "it is not a whole Parquet file"
    if re.search(r"straddling", text):
        return f"a row is longer than {BLOCK_BYTES >> 20} MB, or a quote is never closed"
    if re.search(r"Empty CSV", text):
        return "it is empty"
    if re.search(r"compressed|decompress|gzip|zlib|zstd|lz4|bz2|inflate", text, re.IGNORECASE):
        return "its compressed data is damaged"
    return "it cannot be read as a table of this format"


def refuse_folders(privatized: Sequence[str], in_folders: Collection[str]) -> None:
    """Refuse to privatize columns that names of folders give, such as year=2025.

    Rows come folder by folder, so that their order would tell what such a column says of each, and whether all of these
    names are numbers, as Arrow and Spark read them, may depend on one row.
    """
    if found := [name for name in privatized if name in in_folders]:
        names = ", ".join(map(repr, found))
        written = "or write the table to files without such folders, with its rows in random order."
        raise SchemaError(
            f"the names of folders give {names}, and decide in what order rows are read and which types these columns "
            "have: what they say of a row cannot be protected.",
            f"Pass it through with keep, leave it out with drop, {written}",
            command=f"Pass it through with --keep, leave it out with --drop, {written}",
        )
