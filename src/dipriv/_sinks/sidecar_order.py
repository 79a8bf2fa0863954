"""In which order an output and the files beside it get their names."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from dipriv._base.atomic_write import write_text


def commit_with_sidecars(
    path: Path, commit: Callable[[], None], is_written: Callable[[], bool], beside: Mapping[str, str]
) -> None:
    """Commit an output and the files beside it; at no moment does one lie beside an output that it is not about.

    Parameters
    ----------
    path
        Of the output.
    commit
        Gives the output its name.
    is_written
        Whether it has its name, also if giving it failed afterwards: another program may give a file of its own that
        name at any moment.
    beside
        {ending of the name: text}.
    """
    files = {path.with_name(path.name + ending): text for ending, text in beside.items()}
    if os.path.lexists(path):
        for file in files:
            file.unlink(missing_ok=True)
        commit()
        for file, text in files.items():
            write_text(file, text)
        return
    try:
        for file, text in files.items():
            write_text(file, text)
        commit()
    except BaseException:
        if not is_written():
            for file in files:
                file.unlink(missing_ok=True)
        raise
