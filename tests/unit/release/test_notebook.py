"""How results look in a notebook: escaped, small, and without a private cell."""

from __future__ import annotations

import pickle
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dipriv
from dipriv import Audit, Categorical, Discrete, Schema
from dipriv.auditing.results import Bound
from tests.unit.refusal import NUMBER, SECRET

COLUMN, LABEL = "<b>x & 'y'", '<script>alert("1")</script>'
ROWS = 2000
MAX_SIZE = 20_000


class Reader(HTMLParser):
    """The texts of a page; every element must be closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on") or name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(shown: Any) -> Reader:
    page = shown._repr_html_()
    assert len(page) < MAX_SIZE
    found = Reader(page)
    assert not {"script", "img", "iframe", "b>x"} & found.tags
    return found


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    names = rng.choice([LABEL, "Bern"], ROWS).astype(object)
    names[7] = SECRET
    numbers = rng.integers(0, 50, ROWS)
    numbers[7] = NUMBER
    return pd.DataFrame({COLUMN: names, "n": numbers, "x": rng.standard_normal(ROWS)})


@pytest.fixture(scope="module")
def release(table: pd.DataFrame) -> dipriv.Release[Any]:
    return dipriv.privatize(table, 1.0, seed=2)


def test_a_release_shows_verdict_rows_and_guarantee(release: dipriv.Release[Any]) -> None:
    found = read(release)
    assert f"Release of {ROWS:,} rows, 3 columns, under ε = 1, δ = 1e-9" in found.text
    assert release.verdict is not None
    assert str(release.verdict).splitlines()[0] in found.text
    assert str(release.guarantee).splitlines()[1].strip() in found.text
    assert COLUMN in found.text
    first = release.data["x"].iloc[0]
    assert f"{first:.6g}" in found.text
    assert f"{release.data['x'].iloc[5]:.6g}" not in found.text  # five rows are enough
    assert SECRET not in found.text
    assert str(NUMBER) not in found.text


def test_a_copy_and_each_kind_of_table_are_shown(table: pd.DataFrame, release: dipriv.Release[Any]) -> None:
    assert read(pickle.loads(pickle.dumps(release))).text == read(release).text
    plain = table[["n", "x"]]
    for data in (pl.from_pandas(plain), pa.Table.from_pandas(plain, preserve_index=False), plain.to_numpy()):
        assert "First rows" in read(dipriv.privatize(data, 1.0, seed=3)).text
    assert "First rows" not in read(dipriv.privatize(pl.from_pandas(plain).lazy(), 1.0, seed=3)).text


def test_wide_releases_and_long_texts_stay_small() -> None:
    rng = np.random.default_rng(4)
    wide = pd.DataFrame({f"{'long' * 30}{i}": rng.integers(0, 3, 200) for i in range(60)})
    found = read(dipriv.privatize(wide, 1.0, seed=5))
    assert "and 48 more columns" in found.text


def test_a_guarantee_and_a_schema_are_what_they_print(release: dipriv.Release[Any]) -> None:
    guarantee = read(release.guarantee)
    assert guarantee.text.splitlines() == str(release.guarantee).splitlines()
    schema = read(Schema({COLUMN: Categorical(levels=(LABEL, SECRET)), "n": Discrete(step=1)}))
    assert COLUMN in schema.text
    assert "Categorical(levels=2)" in schema.text
    assert SECRET not in schema.text


def test_an_audit_begins_with_its_conclusion() -> None:
    bound = Bound(f"column {COLUMN}", 1.0, 1.25, 0.999, 1000, "")
    audit = Audit(1.0, "Guarantee: ε = 1.", 100, (bound,), remarks=(LABEL,))
    found = read(audit)
    assert found.text.startswith(audit.conclusion.splitlines()[0])
    assert "Do not publish" in found.text
    assert "100 rows were audited" in found.text


def test_a_comparison_says_that_it_is_private(table: pd.DataFrame, release: dipriv.Release[Any]) -> None:
    compared = release.report(original=table)
    found = read(compared)
    assert found.text.startswith("Contains statistics of the private data; do not publish.")
    assert str(compared).splitlines()[0] in found.text
    assert COLUMN in found.text
    assert SECRET not in found.text
    assert str(NUMBER) not in found.text


def test_a_release_writes_its_report(table: pd.DataFrame, release: dipriv.Release[Any], tmp_path: Any) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    path = tmp_path / "report.html"
    compared = release.report(path, original=table, target="x")
    page = path.read_text(encoding="utf-8")
    assert compared.downstream is not None
    assert "Regression of x" in page
    assert "do not publish" in page
    assert compared == dipriv.compare(table, release, target="x")
