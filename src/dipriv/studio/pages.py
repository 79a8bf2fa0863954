"""HTML: templates with every text escaped, and the files that the page loads."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from dipriv._base.decimals import in_full
from dipriv.errors import DiprivError
from dipriv.guarantee.wording import PRIVATE, but_not_about, percent, unit_name
from dipriv.ledger import Ledger
from dipriv.release.options import DEFAULT_DELTA, DEFAULT_ROWS_PER_UNIT, ReleaseOptions
from dipriv.report import formats
from dipriv.report.page import guarantee_lines, style
from dipriv.schema import RESOLUTIONS
from dipriv.studio.forms import KINDS, TYPES, declared, not_shown, shown
from dipriv.studio.picture import picture
from dipriv.studio.tabs import MAX_UPLOAD, Tab
from dipriv.studio.wording import sentence
from dipriv.studio.worker import Failure
from dipriv.utility import wording as verdict_wording

STATIC = {
    "/": "text/html; charset=utf-8",
    "/studio.css": "text/css; charset=utf-8",
    "/report.css": "text/css; charset=utf-8",
    "/studio.js": "text/javascript; charset=utf-8",
}
"""What needs no token: there is nothing of a table in it."""


@cache
def static(path: str) -> tuple[bytes, str]:
    """A file that the page loads, and its type; the look is that of reports."""
    if path == "/":
        text = _environment().get_template("shell.html").render(warning=PRIVATE, max_upload=MAX_UPLOAD)
    elif path == "/report.css":
        text = style()
    else:
        text = (resources.files("dipriv.studio") / "static" / path[1:]).read_text(encoding="utf-8")
    return text.encode(), STATIC[path]


def render(tab: Tab, step: str, *, out_of_date: bool = False) -> str:
    """A step of a tab, as a piece of the page."""
    template = _environment().get_template(_template(tab, step))
    return str(template.render(tab=tab, step=step, out_of_date=out_of_date, **_facts(tab, step)))


def problem(error: DiprivError) -> str:
    """Why a form was refused, as a piece of the page that has the form."""
    module = _environment().get_template("_parts.html").module
    return str(module.problem(Failure(error.fault, error.command)))


def _template(tab: Tab, step: str) -> str:
    if step == "ledger":
        return "ledger.html"
    if tab.state is not None:
        return "running.html"
    if tab.look is None or tab.choices is None:
        return "choose.html"
    return f"{step}.html"


def _facts(tab: Tab, step: str) -> dict[str, Any]:
    """What a template needs beside the tab."""
    if step == "ledger":
        return _ledger(tab)
    if tab.state is not None or tab.look is None or tab.choices is None:
        return {"tables": tab.settings.files.tables(), "folder": str(tab.settings.files.folder)}
    if step == "budget" and tab.plan is not None:
        return {"drawn": picture(tab.plan, tab.choices.epsilon), "delta": DEFAULT_DELTA} | _ledger(tab)
    if step == "release":
        command, python = tab.repeated()
        options = ReleaseOptions(tab.choices.epsilon, **tab.choices.of_release())
        return {
            "command": command,
            "python": python,
            "folder": str(tab.settings.files.folder),
            "concerns": options.concerns(),
            "names": [dataset.name for dataset in _ledger(tab)["datasets"]],
        }
    return {}


def _ledger(tab: Tab) -> dict[str, Any]:
    """The data sets with their releases, or why they cannot be read."""
    try:
        with Ledger.open(tab.settings.ledger) as ledger:
            datasets = ledger.datasets()
            records = {dataset.name: ledger.records(dataset.name) for dataset in datasets}
            return {"datasets": datasets, "records": records, "place": ledger.url, "ledger_fault": ""}
    except DiprivError as error:
        return {"datasets": [], "records": {}, "place": "", "ledger_fault": f"{error.fault} {error.command}"}


@cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("dipriv.studio"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        label=formats.text, count=formats.count, digits=in_full, percent=percent, sentence=sentence
    )
    environment.globals.update(
        KINDS=KINDS,
        TYPES=TYPES,
        RESOLUTIONS=RESOLUTIONS,
        DEFAULT_ROWS_PER_UNIT=DEFAULT_ROWS_PER_UNIT,
        declared=declared,
        shown=shown,
        not_shown=not_shown,
        guarantee_lines=guarantee_lines,
        unit_name=unit_name,
        but_not_about=but_not_about,
        said=verdict_wording,
    )
    return environment
