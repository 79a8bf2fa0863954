"""The note beside a released file, read by whoever has it."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from pathlib import Path
from typing import Any

from dipriv._serialization.fields import check_fields
from dipriv.guarantee.guarantee import Guarantee, check_epsilon

SIDECAR_SUFFIX = ".dipriv.json"
"""The sidecar has the name of the output and this ending."""
LARGEST_NOTE = 1 << 24


def read_note(released: str | Path) -> tuple[Guarantee | None, dict[str, float]]:
    """What the note beside a released file says: the promise, and how much of each column is kept.

    Anybody may have written it. What is not as `finish` writes it counts as not said.
    """
    path = Path(f"{released}{SIDECAR_SUFFIX}")
    try:
        note = json.loads(path.read_bytes()) if path.is_file() and path.stat().st_size <= LARGEST_NOTE else {}
        kept = note.get("fidelity", {}).items()
        fidelity = {name: x for name, x in kept if isinstance(name, str) and isinstance(x, float) and abs(x) <= 1}
        return _promise_in(note.get("guarantee")), fidelity
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return None, {}


def _promise_in(plain: Any) -> Guarantee | None:
    if plain is None:
        return None
    values = {name: plain[name] for name in (item.name for item in fields(Guarantee)) if name in plain}
    values |= {"conditions": tuple(values.get("conditions", ()))}
    values |= {"epsilon": math.inf} if values.get("epsilon") == "inf" else {}
    check_fields(Guarantee, values)
    found = Guarantee(**values)
    if not math.isinf(found.epsilon):
        check_epsilon(found.epsilon)
    found.check_invariants()
    return found if 0 <= found.delta <= 1 else None
