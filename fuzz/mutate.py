"""Mutations of bytes and of plain data, and values that programs do not expect."""

from __future__ import annotations

import math
from random import Random
from typing import Any

NUMBERS: tuple[Any, ...] = (
    *(0, 1, -1, 2, 3, 7, 63, 64, 65, 127, 128, 255, 256, 1000, 65535, 65536, 2**31 - 1, 2**31, -(2**31), 2**32, 2**53),
    *(2**62, 2**63 - 1, 2**63, -(2**63), 2**64 - 1, 2**64, 10**19, 10**30, 10**400, -(10**400)),
    *(0.0, -0.0, 0.5, 1.0, 1.5, -1.0, 1e-9, 1e-300, 5e-324, 1e9, 1e15, 1e16, 1e19, 1e100, 1.7e308, -1.7e308),
    *(math.nan, math.inf, -math.inf, 0.1, 0.30000000000000004, 1e-12, 2.0**53, 2.0**63, True, False),
)
TEXTS = (
    *("", " ", "a", "é", "0", "-1", "+5", "1e999", "nan", "inf", "-inf", "NA", "null", "true", "1,5", "=1+1", "@x"),
    *("\0", "\n", "\r", "\t", '"', "'", "\\", "\ufeff", "\u202e", "\U0001f600", "../../etc/passwd", "/dev/null", "~"),
    *("x" * 300, "9" * 5000, "a.b.c", "[a]", "{", "}", "2020-02-30", "1970-01-01", "0001-01-01T00:00:00Z", "25:61:61"),
    *("1e999999999", "0x" + "f" * 400, "0b1", "1_000", "<f8", "|O8", "norm", "levy_stable", "os", "__class__", "%s%n"),
)
VALUES: tuple[Any, ...] = (*NUMBERS, *TEXTS, None, [], {}, [[]], [None], {"a": 1}, [0, 1], {"": {}})


def mutate_bytes(rng: Random, data: bytes, most: int = 6) -> bytes:
    """Some pieces cut out, doubled, moved, or overwritten by bits, texts, and numbers that lengths are made of."""
    found = data
    for _ in range(rng.randint(1, rng.randint(1, most))):
        start, size = rng.randrange(len(found) + 1), rng.choice((1, 1, 2, 4, 8, 64, 256))
        piece, other = found[start : start + size], rng.randrange(len(found) + 1)
        new = rng.choice(
            (
                bytes(byte ^ 1 << rng.randrange(8) for byte in piece[:1]) + piece[1:],
                rng.randbytes(len(piece[:8])),
                rng.choice((0, 1, (1 << 8 * size - 1) - 1, 1 << 8 * size - 1, (1 << 8 * size) - 1)).to_bytes(
                    size, rng.choice(("little", "big"))
                ),
                found[other : other + size],
                piece * rng.choice((0, 2, 2, 3, 50)),
                rng.choice(TEXTS).encode(),
            )
        )
        found = found[:start] + new + found[start + (len(new) if rng.random() < 0.5 else len(piece)) :]
    return found


def mutate_plain(rng: Random, plain: Any, most: int = 3) -> Any:
    """A copy of plain data (dicts, lists, numbers, texts) with some of its parts changed; the original stays."""
    for _ in range(rng.randint(1, most)):
        plain = _mutate_one(rng, plain)
    return plain


def any_value(rng: Random) -> Any:
    """A value that nobody expects here."""
    chance = rng.random()
    if chance < 0.8:
        return VALUES[rng.randrange(len(VALUES))]
    if chance < 0.9:
        return rng.randint(-1000, 1000)
    if chance < 0.97:
        return rng.uniform(-10, 10)
    return nested(rng.choice((3, 30, 300, 3000)), rng.random() < 0.5)


def nested(depth: int, lists: bool) -> Any:
    """Lists or dicts in each other."""
    found: Any = 1
    for _ in range(depth):
        found = [found] if lists else {"a": found}
    return found


def _mutate_one(rng: Random, plain: Any) -> Any:
    children = list(plain) if isinstance(plain, dict) else range(len(plain)) if isinstance(plain, list) else ()
    if not children or rng.random() < 0.05:
        return _changed(rng, plain)
    copy = dict(plain) if isinstance(plain, dict) else list(plain)
    key = rng.choice(list(children))
    chance = rng.random()
    if chance < 0.06:
        del copy[key]
    elif chance < 0.09 and isinstance(copy, list):
        copy.insert(rng.randrange(len(copy) + 1), copy[key])
    elif chance < 0.12:
        other = rng.choice(list(children))
        copy[key], copy[other] = copy[other], copy[key]
    elif chance < 0.14 and isinstance(copy, dict):
        copy[rng.choice(TEXTS)] = copy[key]
    else:
        copy[key] = _mutate_one(rng, copy[key])
    return copy


def _changed(rng: Random, value: Any) -> Any:
    chance = rng.random()
    if chance < 0.5 and _is_moderate(value):
        return rng.choice(
            (value + 1, value - 1, -value, value * 2, value // 2, value // 1000, value + 1e-9, value * 1000)
        )
    if chance < 0.5 and isinstance(value, str) and value:
        place = rng.randrange(len(value))
        return value[:place] + rng.choice((*TEXTS, "")) + value[place + rng.randrange(2) :]
    return any_value(rng)


def _is_moderate(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300
