"""The documentation site: every public name has a page, links hold, and it needs no network."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

import dipriv
from dipriv import schema
from research.site import DOCUMENTS, ROOT, assemble, build, relinked
from tests.snapshots.surface import stored

PYTHON = ROOT / "docs" / "reference" / "python.md"
LOADED = re.compile(
    r"""<(?:script|img|source)[^>]+src="(https?:)?//|<link[^>]+href="(https?:)?//[^>]+stylesheet|@import"""
)
"""What a page would load from a network; links that a reader clicks are none of that."""


def public_names() -> set[str]:
    """The public names on record, with the modules that are public themselves left out."""
    found, module = set(), ""
    for line in stored()["api.txt"].splitlines():
        if line.startswith("# "):
            module = line.removeprefix("# ")
        elif (name := re.match(r"(?:class |def )?(\w+)", line)) and not line.startswith(" ") and line != "":
            found |= set() if line.endswith(": module") else {f"{module}.{name[1]}"}
    return found - {"dipriv.__version__"}


def listed_names(text: str) -> set[str]:
    """The names that the page of the Python reference gives pages to."""
    listed = re.findall(r"```{eval-rst}\n.*?\n\n(.*?)```", text, flags=re.DOTALL)
    return {f"dipriv.{name}" for block in listed for name in block.split()}


def test_every_public_name_has_a_page() -> None:
    listed = listed_names(PYTHON.read_text(encoding="utf-8"))
    assert public_names() <= listed
    assert {name for name in listed - public_names() if not name.startswith("dipriv.statistics.")} == set()


def test_a_name_without_a_page_is_found() -> None:
    """The control."""
    text = PYTHON.read_text(encoding="utf-8").replace("   privatize_file\n", "")
    assert public_names() - listed_names(text) == {"dipriv.privatize_file"}


def test_statistics_have_pages() -> None:
    public = {name for name, value in vars(dipriv.statistics).items() if dataclasses.is_dataclass(value)}
    named = {f"dipriv.statistics.{name}" for name in public if not name.startswith("_")} - {"dipriv.statistics.Cells"}
    assert {name for name in named if ".ColumnValues" not in name} <= listed_names(PYTHON.read_text(encoding="utf-8"))


def test_links_out_of_the_documentation_lead_to_pages_or_name_the_file() -> None:
    text = "[a](../../SECURITY.md#b) and [c](../tutorial.md) and [`x`](../../pyproject.toml) and [d](https://e.f)"
    assert relinked(text, "docs/howto/y.md", "howto/y.md") == (
        "[a](../project/security.md#b) and [c](../tutorial.md) and `x` (`pyproject.toml`) and [d](https://e.f)"
    )
    assert all((ROOT / document).exists() for document in DOCUMENTS)


def test_the_page_of_schemas_has_every_kind_and_option() -> None:
    text = (ROOT / "docs" / "reference" / "schema.md").read_text(encoding="utf-8")
    for name, kind in schema._KINDS.items():
        (row,) = (line for line in text.splitlines() if line.startswith("| `") and f"`{name}`" in line.split("|")[1])
        assert {f"`{field.name}`" for field in dataclasses.fields(kind)} <= set(re.findall(r"`\w+`", row))
    for field in dataclasses.fields(dipriv.Dialect):
        assert f"`{field.name}`" in text


def test_the_page_of_files_has_every_key(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "reference" / "files-beside.md").read_text(encoding="utf-8")
    note_page, sheet_page = text.partition("## The data sheet")[::2]
    table = pa.table({"age": [18 + number % 72 for number in range(2000)], "text": ["=1", "b"] * 1000})
    rules = dipriv.Schema(rules=["age < 18 => text = 'b'"])
    dipriv.privatize(table, 1.0, schema=rules).write(tmp_path / "out.csv")
    note, sheet = (json.loads((tmp_path / f"out.csv.{end}.json").read_text()) for end in ("dipriv", "sheet"))
    for key in [*note, *note["guarantee"].keys() - {"format", "legacy"}]:
        assert f"`{key}`" in note_page, key
    for key in sheet:
        assert f"`{key}`" in sheet_page, key
    assert f"format {note['format']}" in note_page
    assert f"format {sheet['format']}" in sheet_page


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for package in ("sphinx", "myst_parser", "numpydoc", "furo", "sphinx_copybutton"):
        pytest.importorskip(package, reason='the site needs pip install "dipriv[docs]"')
    folder = tmp_path_factory.mktemp("site")
    assemble(folder / "source")
    build(folder / "source", folder / "site")
    return folder / "site"


@pytest.mark.slow
@pytest.mark.xdist_group("site")
def test_the_site_is_built_without_a_warning_and_every_name_has_its_page(site: Path) -> None:
    for name in public_names():
        page = site / "reference" / "python" / f"{name}.html"
        assert f'id="{name}"' in page.read_text(encoding="utf-8"), name


@pytest.mark.slow
@pytest.mark.xdist_group("site")
def test_search_and_pages_need_no_network(site: Path) -> None:
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert index.startswith("Search.setIndex(")  # loaded by a script element: it works from a file, too
    assert '"privat' in index
    for page in site.rglob("*.html"):
        assert LOADED.search(page.read_text(encoding="utf-8")) is None, page
    assert LOADED.search('<script src="https://cdn.example.org/a.js">')  # the control
