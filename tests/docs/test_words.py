"""One language: source and documentation use the terms of the field, not words that this project once coined."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

BANNED = {
    "purse": "privacy budget, accountant",
    "door": "measurement, primitive",
    "doors": "measurements, primitives",
    "world": "neighbouring dataset",
    "worlds": "neighbouring datasets",
    "stage": "canary run",
    "book": "ledger",
    "speck": "isolated bin",
    "specks": "isolated bins",
    "lawful": "kinds from the distribution",
    "told": "reported, stated, given",
    "tell of": "disclose, report",
    "as it is asked for": "on request, where requested",
    "recipe": "spec",
    "recipes": "specs",
    "aside": "excluded",
    "whatever": "for every, independent of",
    "apart": "separate, distinguish, uses_holdout",
    "so many": "the number itself, or the name of the parameter",
    "line-up": "re-identification among k candidates",
}
"""Words and phrases that are not used, and what to write in their place."""

BANNED_IN_NAMES = {
    "promise": "guarantee",
    "promised": "stated",
    "law": "distribution, marginal, joint",
    "hold": "clip, contain",
    "holding": "clipping, containing",
    "MOST": "MAX",
    "LARGEST": "MAX",
    "GREATEST": "MAX",
    "FEWEST": "MIN",
    "LEAST": "MIN",
    "SMALLEST": "MIN",
}
"""Words that no Python name contains, though a sentence may; those in capitals are meant for constants only."""

RANDOM_STREAM = re.compile(r"\.child\(")
"""A line that names a stream of random bits: another name would change seeded releases."""

SPARK_NAMES = re.compile(r"\.(getStageInfo|stageIds)\b")
"""Names in the interface of Spark."""

BOUNDARY = re.compile(r"_|(?<=[a-z0-9])(?=[A-Z])")
"""Where one word of an identifier ends and the next begins."""

PATTERN = re.compile(rf"\b({'|'.join(map(re.escape, sorted(BANNED, key=len, reverse=True)))})\b", re.IGNORECASE)


def texts() -> list[Path]:
    """Return all sources, and all documents that people read."""
    sources = [path for ending in ("py", "pyi", "html") for path in (ROOT / "src").rglob(f"*.{ending}")]
    return sorted([*sources, *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])


def found(text: str) -> list[tuple[int, str]]:
    """Return the banned words in a text with the numbers of their lines, those inside identifiers included."""
    lines = (
        "" if RANDOM_STREAM.search(line) else BOUNDARY.sub(" ", SPARK_NAMES.sub("", line)) for line in text.splitlines()
    )
    return [(n, match[1].lower()) for n, line in enumerate(lines, start=1) for match in PATTERN.finditer(line)]


def found_in_names(source: str) -> list[tuple[int, str]]:
    """Return the words that Python names must not contain, with the numbers of their lines."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    names = (
        (token.start[0], BOUNDARY.sub(" ", token.string).split()) for token in tokens if token.type == tokenize.NAME
    )
    return [(n, word) for n, words in names for word in words if word in BANNED_IN_NAMES]


@pytest.mark.parametrize("path", texts(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_terms_are_those_of_the_field(path: Path) -> None:
    assert [f"line {n}: {word} (rather: {BANNED[word]})" for n, word in found(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    "path",
    [path for path in texts() if path.suffix in (".py", ".pyi")],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_names_use_the_terms_of_the_field(path: Path) -> None:
    names = found_in_names(path.read_text(encoding="utf-8"))
    assert [f"line {n}: {word} (rather: {BANNED_IN_NAMES[word]})" for n, word in names] == []


def test_words_are_found_in_sentences_and_identifiers() -> None:
    """The control."""
    assert found("def open_door(): ...\nAtDoors, and so many rows.\n") == [(1, "door"), (2, "doors"), (2, "so many")]
    assert found("a.child('world')\nAll that is told.\n") == [(2, "told")]
    assert found_in_names("MOST_ROWS = law_on  # a law\nat_most = laws, promise") == [
        (1, "MOST"),
        (1, "law"),
        (2, "promise"),
    ]
    assert found("outdoors, bookkeeping, worldwide, upstage, apartment") == []
