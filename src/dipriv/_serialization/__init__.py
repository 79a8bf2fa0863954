"""Fitted objects <-> plain data: JSON and numeric arrays in one file, never code.

A file from elsewhere is taken apart step by step, and refused at the first that is not right: its size, before anything
is unpacked (`archive`); the classes it names, from a list, and their fields, against the types that these declare
(`fields`); and the numbers in them (`sound`), so that no compiled loop ever reads beyond an array.
"""

from __future__ import annotations

from dipriv._serialization.archive import LARGEST
from dipriv._serialization.objects import dump, load

__all__ = ["LARGEST", "dump", "load"]
