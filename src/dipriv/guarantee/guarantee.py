"""What is promised, to whom, and on which conditions: a frozen statement, apart from any computation."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any

from dipriv._invariants import require
from dipriv._registry import serializable
from dipriv.errors import InputError

SMALLEST_EPSILON, LARGEST_EPSILON = 1e-9, 1e12
"""Beyond these a release is pure noise or no privacy at all, and the arithmetic of the noise would degrade."""
MAX_TEXT = 1 << 16
"""The longest text of a guarantee that comes from a file."""


@serializable()
@dataclass(frozen=True)
class Guarantee:
    """A differential-privacy guarantee (the paper's Definition 1) in plain words and plain data.

    >>> promise = Guarantee(epsilon=1.0, protects="every row", kernel="laplace", reference="known law")
    >>> promise.power(level=0.05) == 0.05 * math.e
    True
    """

    epsilon: float
    protects: str
    kernel: str
    reference: str
    conditions: tuple[str, ...] = ()
    secure_randomness: bool = True
    model: str = "central"
    unit: str = "one row"
    neighbours: str = "replace one row"
    delta: float = 0.0

    def check_invariants(self) -> None:
        """Words from a file are single lines that a terminal shows as they are."""
        texts = (self.protects, self.kernel, self.reference, self.model, self.unit, self.neighbours, *self.conditions)
        require(all(len(text) <= MAX_TEXT and text.isprintable() for text in texts), self, "words are printable lines")

    def power(self, level: float = 0.05, releases: int = 1) -> float:
        """Lemma 1: no test about one person's value at this level has more power than level * e^(M ε), M releases."""
        if not 0 < level < 1:
            raise InputError(f"level={level!r} is not between 0 and 1.", "Use a significance level such as 0.05.")
        exponent = releases * self.epsilon
        return min(1.0, level * math.exp(exponent)) if exponent < 700 else 1.0

    def to_dict(self) -> dict[str, Any]:
        told = "inf" if math.isinf(self.epsilon) else self.epsilon  # JSON has no infinity
        return asdict(self) | {"epsilon": told, "conditions": list(self.conditions), "power_at_5_percent": self.power()}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def __str__(self) -> str:
        if math.isinf(self.epsilon):
            return f"No guarantee: {self.kernel} is not differentially private. It protects {self.protects}."
        local = self.model == "local"
        name = "local differential privacy" if local else "differential privacy"
        lines = [
            f"Guarantee: ε = {_plain(self.epsilon)} {name} (δ = {_plain(self.delta)}).",
            f"  Protects:   {self.protects}.",
            f"  Means:      replacing {self.unit} by any other changes the probability of any release by a factor of "
            f"at most e^ε = {_factor(self.epsilon)}.",
            f"  Attacker:   a test of one row's true value at level 5% has power at most {_percent(self.power())} "
            f"after this release, {_percent(self.power(releases=2))} after two.",
            f"  Method:     {self.kernel} kernel, reference: {self.reference}.",
        ]
        if not self.secure_randomness:
            lines.insert(1, "  NOT PRIVATE: SEEDED. Whoever knows the seed can undo the noise; use it for experiments.")
        if self.conditions:
            lines.append("  Provided that:")
            lines.extend(f"    - {condition}." for condition in self.conditions)
        return "\n".join(lines)


def _plain(number: float) -> str:
    """All digits of a number, without a trailing ".0"."""
    return repr(float(number)).removesuffix(".0")


def _percent(share: float) -> str:
    """A bound in percent with one decimal, rounded up."""
    return f"{math.ceil(share * 1000 - 1e-9) / 10:.1f}%"


def _factor(epsilon: float) -> str:
    """e^ε to four digits, rounded up."""
    if epsilon >= 700:
        return "a number too large to print"
    value = math.exp(epsilon)
    unit = 10.0 ** (math.floor(math.log10(value)) - 3)
    return f"{math.ceil(value / unit) * unit:.4g}"


def check_epsilon(epsilon: object) -> float:
    """`epsilon` as a float: a finite number above zero.

    >>> check_epsilon(1)
    1.0
    """
    remedy = "Use a finite number above 0, for example 1.0; smaller is more private."
    if isinstance(epsilon, (bool, str, bytes)) or not hasattr(epsilon, "__float__"):
        raise InputError(f"epsilon is a {type(epsilon).__name__}, not a number.", remedy)
    try:
        value = float(epsilon)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"epsilon is a {type(epsilon).__name__}, not a number.", remedy) from None
    if not (value > 0 and math.isfinite(value)):
        raise InputError(f"epsilon={value!r} is not a finite number above 0.", remedy)
    if not SMALLEST_EPSILON <= value <= LARGEST_EPSILON:
        raise InputError(f"epsilon={value!r} is outside [{SMALLEST_EPSILON:g}, {LARGEST_EPSILON:g}].", remedy)
    return value
