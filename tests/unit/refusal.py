"""How an error must read: its class, what it names, a remedy, and never a cell of the data."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import dipriv

SECRET = "zq7-marker-xv"
NUMBER = 918273645
_SHOWN = (SECRET, str(NUMBER), f"{float(NUMBER):g}", f"{NUMBER:,}")


def refused(error: type[dipriv.DiprivError], *needles: str, call: Callable[[], Any]) -> dipriv.DiprivError:
    """`call` raises exactly this class with these words, a fault and remedies; no cell shows, chained or not."""
    with pytest.raises(dipriv.DiprivError) as caught:
        call()
    fault = caught.value
    assert type(fault) is error
    text = str(fault)
    for needle in needles:
        assert needle in f"{text}\n{fault.command}"
    assert text.splitlines() == [fault.fault, fault.remedy]
    for sentence in (fault.fault, fault.remedy, fault.command):
        assert sentence.endswith(".")
    if fault.command != fault.remedy:  # each in the words of its interface
        assert "dipriv ledger" in fault.remedy or not re.search(r"(^|[ (])--[a-z]", fault.remedy)
        assert not re.search(r"\w=[\[{.'\"]|[A-Z]\w+\(", fault.command)
    assert fault.__cause__ is None
    assert fault.__suppress_context__ or fault.__context__ is None
    printed = "".join(traceback.format_exception(fault))
    for cell in _SHOWN:
        assert cell not in f"{printed}{fault.command}"
        assert cell not in repr(fault)
    return fault


def privatize(table: Any, epsilon: Any = 1.0, **options: Any) -> Any:
    """The call under test: seeded, with a hold-out unless a reference or a public table is given."""
    reference = {} if "public" in options else {"reference": "holdout"}
    return dipriv.privatize(table, epsilon, **{"seed": 5, **reference, **options}).data
