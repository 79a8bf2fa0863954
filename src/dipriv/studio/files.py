"""The files of a studio: a private folder that goes with it, and those that the user chose.

The private folder holds uploads and reports. It is for its owner only and is removed at exit; what a crash left behind
is removed at the next start: a folder whose lock nobody holds belongs to a process that has ended.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from platformdirs import user_cache_path

from dipriv._base.atomic_write import create
from dipriv.errors import DiprivError, InputError, StorageError
from dipriv.sources._formats import format_of

LOCK = "lock"
MAX_LISTED = 200
"""How many tables of the user's folder are listed."""


@dataclass(frozen=True)
class PrivateFolder:
    """A folder for one run, for its owner only."""

    path: Path
    _lock: BinaryIO = field(repr=False)

    @classmethod
    @contextmanager
    def made(cls, root: Path | None = None) -> Iterator[PrivateFolder]:
        """A new folder below `root` (by default in the user's cache folder), removed at the end with all it holds."""
        root = user_cache_path("dipriv") / "studio" if root is None else root
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            root.chmod(0o700)
            with (root / LOCK).open("ab") as among_starts:
                fcntl.flock(among_starts, fcntl.LOCK_EX)
                _remove_leftovers(root)
                path = Path(tempfile.mkdtemp(dir=root))
                lock = create(path / LOCK)
                fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else "it cannot be used"
            raise StorageError(f"{root}: {reason}.", "The studio needs this folder for uploads and reports.") from None
        with lock:
            try:
                yield cls(path, lock)
            finally:
                shutil.rmtree(path, ignore_errors=True)

    def of_tab(self, tab: str) -> Path:
        """The folder of a tab, which is made."""
        path = self.path / tab
        path.mkdir(mode=0o700, exist_ok=True)
        return path


def _remove_leftovers(root: Path) -> None:
    for path in root.iterdir():
        if path.is_dir() and not path.is_symlink() and not _is_held(path / LOCK):
            shutil.rmtree(path, ignore_errors=True)


def _is_held(lock: Path) -> bool:
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a folder without a lock was not finished
        return False
    return False


@dataclass(frozen=True)
class UserFiles:
    """The folder that the user started the studio for, and a file that they named on the command line.

    Nothing else is read or written; links that lead out of the folder are outside.
    """

    folder: Path
    named: Path | None = None

    @classmethod
    def of(cls, file: Path | None, folder: Path | None) -> UserFiles:
        """The folder is by default that of the file, else the current one."""
        if file is not None and not file.is_file():
            raise InputError(f"{file} is not a file.", "Check the path.")
        chosen = folder or (Path.cwd() if file is None else file.parent)
        if not chosen.is_dir():
            raise InputError(f"{chosen} is not a folder.", "Check the path.")
        return cls(chosen.resolve(), None if file is None else file.resolve())

    def table(self, text: str) -> Path:
        """The table that a request names."""
        path = self._inside(text)
        if not os.path.isfile(path):
            raise InputError(f"{path.name} is not a file in {self.folder}.", "Choose one of the list.")
        return path

    def output(self, text: str) -> Path:
        """Where a request wants a release to be written."""
        if not text.strip():
            raise InputError("the release has no file name.", "Write one, such as released.csv.")
        return self._inside(text)

    def free_name(self, table: str) -> str:
        """A name for the release of a table that no file in the folder has yet."""
        stem, dot, endings = table.partition(".")
        names = (f"{stem}-released{number}{dot}{endings}" for number in ("", *(f"-{n}" for n in range(2, MAX_LISTED))))
        return next((name for name in names if not os.path.lexists(self.folder / name)), "")

    def shown(self, path: Path) -> str:
        """A path as it is written on a command line in the user's folder."""
        return str(path.relative_to(self.folder)) if path.is_relative_to(self.folder) else str(path)

    def tables(self) -> list[str]:
        """The tables in the folder, by name."""
        return [name for name in sorted(os.listdir(self.folder)) if self._is_table(name)][:MAX_LISTED]

    def _is_table(self, name: str) -> bool:
        try:
            format_of(name)
        except DiprivError:
            return False
        return not name.startswith(".") and (self.folder / name).is_file()

    def _inside(self, text: str) -> Path:
        try:
            path = (self.folder / text).resolve()
        except (OSError, RuntimeError, ValueError):  # too long, a loop of links, a null character
            raise InputError("this is not the path of a file.", "Choose one of the list.") from None
        if path != self.named and not path.is_relative_to(self.folder):
            raise InputError(
                f"the path is outside of {self.folder}.",
                "Start the studio for the folder that has the file: dipriv studio --folder FOLDER.",
            )
        return path
