"""Atomic writes: a file appears whole or not at all, and never through a link.

A file is written next to its destination under an unpredictable temporary name, for its owner only, flushed to disk,
and renamed. A link at the destination is replaced; its target is not touched.
"""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from dipriv.errors import InputError, StorageError

OWNER_ONLY, FOR_ALL = 0o600, 0o666
"""Who may read and write a finished file; the process' umask takes more away."""
MAX_NAME_BYTES = 255
"""What file systems take, in bytes."""
_ROOM = len("..0123456789abcdef.part")


def temporary_path(path: Path) -> Path:
    """The temporary name of an unfinished file, next to the final one."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")


def check_name(path: Path, ending: str = "") -> None:
    """Refuse, before anything is done, a name too long for a part or for a file beside it with a longer name."""
    length = len(os.fsencode(path.name + ending)) + _ROOM
    if length > MAX_NAME_BYTES:
        raise InputError(
            f"the name of the output is too long by {length - MAX_NAME_BYTES} bytes.", "Choose a shorter name."
        )


def create(part: Path) -> BinaryIO:
    """Create a new file for its owner only; fails if the name exists, and does not follow links."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    return os.fdopen(os.open(part, flags, OWNER_ONLY), "wb")


def commit_file(part: Path, path: Path, mode: int = FOR_ALL, *, replace: bool = True) -> None:
    """Give a finished file its mode, flush it to disk and rename it; an existing file is replaced, or an error."""
    with suppress(PermissionError):  # a file system without modes
        part.chmod(mode & ~_umask())
    with part.open("rb") as file:
        os.fsync(file.fileno())
    if replace:
        part.replace(path)
    else:
        _rename_exclusive(part, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def is_at(path: Path, made: os.stat_result | None) -> bool:
    """Whether a file or folder, of which this was found when it was made, has this name."""
    try:
        return made is not None and os.path.samestat(path.stat(follow_symlinks=False), made)
    except OSError:
        return False


def write_atomic(path: Path, data: bytes, mode: int = FOR_ALL) -> None:
    """Write a file with this content and mode atomically, replacing an existing one."""
    part = temporary_path(path)
    try:
        with create(part) as file:
            file.write(data)
        commit_file(part, path, mode)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "it cannot be written"
        raise StorageError(f"{path.name}: {reason}.", "Check the folder and the space on the disk.") from None
    finally:
        part.unlink(missing_ok=True)


def write_text(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a text file atomically."""
    write_atomic(path, text.encode("utf-8", "replace"), mode)


def _umask() -> int:
    """The process' umask. It is read by setting it, to one that takes more away: other threads may create files."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _rename_exclusive(part: Path, path: Path) -> None:
    """Rename a file unless the new name exists, without a race."""
    try:
        os.link(part, path)
        part.unlink()
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        part.replace(path)
