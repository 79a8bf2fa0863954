"""A form that is sent as it was shown changes nothing; what is filled in from private rows is a draft."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import dipriv
from dipriv.release.options import ReleaseOptions
from dipriv.schema import Schema
from dipriv.studio import pages
from dipriv.studio.choices import Choices
from dipriv.studio.tabs import Tab
from tests.unit.studio.support import Client, studio

COLUMNS = ("ssn", "note", "key", "zip", "trade", "pay", "part", "born", "weight", "job", "zero", "day", "plain")
DECLARED: dict[str, Any] = {
    "zip": dipriv.Postal(digits=3, levels=("010", "987")),
    "ssn": dipriv.Identifier(),
    "note": dipriv.Text(),
    "key": dipriv.Identifier(anew=True),
    "trade": dipriv.Code(levels=("01", "02")),
    "pay": dipriv.Money(lower=0),
    "part": dipriv.Percent(step=0.5),
    "born": dipriv.Year(lower=1900),
    "weight": dipriv.Weight(total=1000),
    "job": dipriv.Categorical(levels=(" cook", "a\nb", "c"), encoding="onehot"),
    "zero": dipriv.Mixed(atoms=(0.0,), unit=2.0),
    "day": dipriv.Datetime(resolution="day", lower="2020-01-01"),
}


class Fields(HTMLParser):
    """The fields of a form of the page, as a browser sends them."""

    def __init__(self, form: str, page: str) -> None:
        super().__init__()
        self.form, self.is_in, self.area, self.select, self.sent = form, False, "", "", dict[str, str]()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        of = dict(attrs)
        name, value = of.get("name") or "", of.get("value") or ""
        if tag == "form":
            self.is_in = of.get("data-do") == self.form
        if not self.is_in:
            return
        if tag == "input":
            self.sent[name] = value
        elif tag == "textarea":
            self.area, self.sent[name] = name, ""
        elif tag == "select":
            self.select = name
        elif tag == "option" and (self.select not in self.sent or "selected" in of):
            self.sent[self.select] = value

    def handle_endtag(self, tag: str) -> None:
        self.area = "" if tag == "textarea" else self.area
        self.is_in = self.is_in and tag != "form"

    def handle_data(self, data: str) -> None:
        if self.area:
            self.sent[self.area] += data


def declared(*, is_draft: bool) -> Schema:
    schema = Schema(DECLARED, rules=["pay > 0 => part >= 0"])
    schema.is_draft = is_draft
    return schema


@pytest.fixture(params=[True, False], ids=["draft", "checked"])
def client(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Client]:
    (tmp_path / "mine").mkdir()
    lines = [
        f"{row:09},text {row},{row},{('01099', '98765')[row % 2]},0{1 + row % 2},{row}.25,{row % 100}.5,"
        f"{1950 + row % 50},{1 + row % 3}.5,c,{row % 2 * row}.0,2024-01-{1 + row % 28:02},{'xy'[row % 2]}"
        for row in range(200)
    ]
    (tmp_path / "mine" / "t.csv").write_text("\n".join([",".join(COLUMNS), *lines]) + "\n")
    schema = declared(is_draft=request.param)
    with studio(tmp_path / "cache", tmp_path / "mine", tmp_path / "mine" / "t.csv", schema=schema) as running:
        yield Client(running).begin()


def opened(client: Client) -> tuple[Tab, Choices]:
    tab = client.server.tabs.find(client.tab)
    assert tab is not None
    assert tab.choices is not None, tab.failure
    return tab, tab.choices


def sent(client: Client, form: str, **changed: str) -> Choices:
    """The choices after the form was sent as it is shown, but for some fields."""
    tab, _ = opened(client)
    client.do(form, **{**Fields(form, pages.render(tab, form)).sent, "go": "question", **changed})
    return opened(client)[1]


def number(column: str) -> int:
    return COLUMNS.index(column)


def test_forms_that_are_sent_as_they_are_shown_change_nothing(client: Client) -> None:
    tab, before = opened(client)
    for form in ("table", "question"):
        after = sent(client, form)
        assert after == before
        assert after.schema == declared(is_draft=False)
        assert after.schema.left_out == before.schema.left_out == ("ssn", "note", "key")
        assert after.schema.is_draft == before.schema.is_draft
        concerns = [ReleaseOptions(1.0, **one.of_release()).concerns() for one in (before, after)]
        assert concerns[0] == concerns[1]
        assert len(concerns[0]) == before.schema.is_draft
    assert not {"ssn", "note", "key"} & set(tab.released_names)
    page = pages.render(tab, "table")
    assert page.count("leave out, as declared") == 2
    assert "Also declared: digits = 3." in page


def test_a_meaning_keeps_what_the_form_does_not_show(client: Client) -> None:
    levels = {f"values-{number('zip')}": "010\n011", f"upper-{number('pay')}": "500"}
    schema = sent(client, "table", **levels, **{f"kind-{number('ssn')}": ""}).schema
    assert schema.meanings["zip"] == dipriv.Postal(digits=3, levels=("010", "011"))
    assert schema.meanings["pay"] == dipriv.Money(lower=0, upper=500)
    assert schema.left_out == ("note", "key")
    assert "a value that is not offered" in client.do("table", **{f"kind-{number('plain')}": "identifier"}).text


def test_what_is_filled_in_from_the_table_is_a_draft_until_it_is_checked(client: Client) -> None:
    plain = number("plain")
    filled = {f"kind-{plain}": "categorical", f"values-{plain}": "x\ny", "drafted": "1"}
    schema = sent(client, "table", **filled).schema
    assert schema.is_draft
    assert "plain" in schema.read_from_rows
    assert "is a draft" in pages.render(opened(client)[0], "table")
    assert sent(client, "table").schema.is_draft
    assert not sent(client, "table", checked="1").schema.is_draft
    assert 'getElementById("drafted").value = "1"' in pages.static("/studio.js")[0].decode()


def test_a_schema_that_only_leaves_columns_out_is_used() -> None:
    schema = Schema({"ssn": dipriv.Identifier()})
    assert Choices(Path("t.csv"), "t.csv", schema=schema).of_release() == {"schema": schema}
