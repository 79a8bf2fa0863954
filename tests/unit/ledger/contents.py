"""Fingerprints of tables that are known by a word."""

from __future__ import annotations

import hashlib

from dipriv._base.table_fingerprint import TableFingerprint


def digest(word: bytes) -> bytes:
    return hashlib.blake2b(word, digest_size=16).digest()


def content(word: bytes, rows: int = 1, after: tuple[bytes, ...] = ()) -> TableFingerprint:
    """A table of this content, without columns; its first rows are those of the tables `after`."""
    pairs = [(order(earlier), b"") for earlier in after]
    return TableFingerprint(rows, digest(word), digest(b"order of " + word), prefixes=frozenset(pairs))


def order(word: bytes) -> bytes:
    return content(word).order
