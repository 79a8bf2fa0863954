"""In which order an output and its sidecar get their names."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from dipriv._base.atomic_write import write_text
from dipriv.guarantee.sidecar import SIDECAR_SUFFIX


def commit_with_sidecar(path: Path, commit: Callable[[], None], sidecar: str) -> None:
    """Commit an output and its sidecar; at no moment does a sidecar lie beside an output that it is not about."""
    beside = path.with_name(path.name + SIDECAR_SUFFIX)
    if os.path.lexists(path):
        beside.unlink(missing_ok=True)
        commit()
        write_text(beside, sidecar)
        return
    write_text(beside, sidecar)
    try:
        commit()
    except BaseException:
        if not os.path.lexists(path):
            beside.unlink(missing_ok=True)
        raise
