"""Settings of Sphinx, for `make docs`; research/site.py copies this file with the pages."""

from __future__ import annotations

import re
from typing import Any

import dipriv

project = "dipriv"
author = "The dipriv developers"
copyright = author
version = release = dipriv.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "sphinx_copybutton"]

myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # blocks of output in several notations
default_role = "code"  # docstrings write `name` for code
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # signatures have them; docstrings say the rest
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

templates_path = ["templates"]

html_theme = "furo"
html_title = f"dipriv {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}

FIELD = re.compile(r"^(\s*)(\*{0,2}\w[\w, *]*) : (.+)$")
SECTION = re.compile(r"^(Parameters|Attributes|Returns|Raises|Yields|Warns)$")


def fields_have_descriptions(app: Any, what: str, name: str, of: Any, options: Any, lines: list[str]) -> None:
    """In dipriv's docstrings a field is `name : what it is`; numpydoc takes what follows the colon for a type."""
    inside, changed = False, []
    for number, line in enumerate(lines):
        if number + 1 < len(lines) and set(lines[number + 1].strip()) == {"-"}:
            inside = bool(SECTION.match(line.strip()))
        found = FIELD.match(line) if inside and not line.startswith(" ") else None
        changed += [line] if found is None else [f"{found[1]}{found[2]}", f"{found[1]}    {found[3]}"]
    lines[:] = changed


def setup(app: Any) -> None:
    """Connect before numpydoc reads the docstring."""
    app.connect("autodoc-process-docstring", fields_have_descriptions, priority=400)
