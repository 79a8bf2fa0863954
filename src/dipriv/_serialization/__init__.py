"""Fitted objects <-> plain data: JSON and numeric arrays in one file, never code.

An untrusted file is checked step by step, and refused at the first that fails: its size, before anything is
decompressed (`archive`); the classes that it names, which must have registered themselves (`dipriv._base.registry`);
their fields, against the declared types (`fields`) and the limits of the class; and at last the invariants that each
class checks itself, so that no compiled loop ever reads beyond an array.
"""

from __future__ import annotations

from dipriv._serialization.archive import MAX_BYTES
from dipriv._serialization.objects import dump, load

__all__ = ["MAX_BYTES", "dump", "load"]
