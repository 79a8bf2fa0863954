"""Finding 6: "unlimited computing power" was false, since all noise of a release is a function of one 256-bit key.

The guarantee is computational, and SECURITY.md, README, guide, docstrings and every printed guarantee say so.
"""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from scipy import stats

import dipriv
from dipriv._random import bits
from dipriv.references import Known

ROOT = Path(__file__).parents[3]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
FALSE = re.compile(r"un(limited|bounded) (computing )?power|information-theoretic|for as long as they like")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_document_claims_more_than_a_computational_guarantee(path: Path) -> None:
    assert FALSE.search(path.read_text(encoding="utf-8")) is None


def test_the_false_sentence_is_found() -> None:
    """The control."""
    assert FALSE.search("The adversary has unlimited computing power.")


@pytest.mark.parametrize("name", ["SECURITY.md", "README.md", "docs/theory/method.md"])
def test_documents_say_computational_and_name_the_assumption(name: str) -> None:
    text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
    assert "guarantee is computational" in text
    assert "AES-256" in text


def test_docstrings_say_computational() -> None:
    for thing in (dipriv.privatize, dipriv.Guarantee, bits):
        assert "computational" in str(thing.__doc__)


def test_every_guarantee_prints_the_assumption() -> None:
    table = pa.table({"x": [float(number) for number in range(200)]})
    known = Known(stats.norm())
    for reference in ("private", "holdout", known):
        said = str(dipriv.privatize(table, 1.0, reference=reference).guarantee)
        assert "no attacker can distinguish AES-256 keystream, which the noise is drawn from, from random bits." in said
    assert "AES-256" not in str(dipriv.privatize(table, 1.0, reference=known, seed=1).guarantee)  # not private at all
