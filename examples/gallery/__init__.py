"""The gallery: worked examples on real tables, from a question to a conclusion.

A script has cells, as notebooks have: `# %% [markdown]` begins text, `# %%` begins code. Editors such as VS Code and
Jupytext run them cell by cell. `python -m examples.gallery` runs all scripts whose data are here and records text, code
and output as pages of docs/gallery.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dipriv.errors import InputError

FOLDER = Path(__file__).parent
NAMES = ("survey", "bank", "salaries", "ratings", "panel")
"""In the order of reading."""
MARK = re.compile(r"^# %%(?P<text> \[markdown\])?\n", re.MULTILINE)


@dataclass(frozen=True)
class Cell:
    """Text to read, or code to run."""

    is_text: bool
    content: str


def cells(name: str) -> list[Cell]:
    """The cells of a script."""
    parts = MARK.split((FOLDER / f"{name}.py").read_text(encoding="utf-8"))[1:]
    return [
        Cell(mark is not None, _uncommented(body) if mark else body.strip("\n"))
        for mark, body in zip(parts[::2], parts[1::2], strict=True)
    ]


def executed(name: str) -> Iterator[tuple[Cell, str]]:
    """Run a script cell by cell, and give each cell with what it printed."""
    names: dict[str, Any] = {"__name__": name}
    for cell in cells(name):
        printed = io.StringIO()
        if not cell.is_text:
            with contextlib.redirect_stdout(printed), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of seeds, on purpose
                exec(compile(cell.content, f"{name}.py", "exec"), names)  # noqa: S102 (our own script)
        yield cell, printed.getvalue().rstrip()


def page(name: str, made: str) -> str:
    """The page of a script: its text, code and output, and how it was made."""
    blocks = []
    for cell, printed in executed(name):
        blocks.append(cell.content if cell.is_text else f"```py\n{cell.content}\n```")
        if printed:
            blocks.append(f"```text\n{printed}\n```")
    return "\n\n".join([*blocks, made]) + "\n"


def code_of(text: str) -> list[str]:
    """The code on a page."""
    return re.findall(r"```py\n(.*?)\n```", text, flags=re.DOTALL)


def missing_data(name: str) -> str | None:
    """Why a script cannot be run here: the data set that it lacks; None if it can."""
    from research.data import data_file

    asked = re.findall(r'data_file\("([^"]+)"\)', (FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    try:
        for path in asked:
            data_file(path)
    except InputError as error:
        return str(error)
    return None


def _uncommented(body: str) -> str:
    return "\n".join(line.removeprefix("#").removeprefix(" ") for line in body.strip("\n").splitlines())
