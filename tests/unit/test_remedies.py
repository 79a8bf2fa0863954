"""Remedies are in the words of the interface: arguments in Python, options on the command line."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import dipriv
from dipriv.errors import DiprivError, InputError, StorageError

SOURCE = Path(dipriv.__file__).parent
OPTION = re.compile(r"(^|[ (])--[a-z]")
ARGUMENT = re.compile(r"\b[a-z_]+=(\[|\.\.\.|[A-Z'\"{])|\b[A-Z][a-z]+\(")
OF_PYTHON = re.compile(
    r"\b[a-z_]+=(?!=)|\b[A-Z]\w*\(|\w\(\)|\bdipriv\.[a-z]|`|\b(reference_share|rows_per_unit|new_dataset|escape_formulas)\b"
)
"""Arguments, calls and attributes: words of Python that a user of the command line has no use for."""
ONLY_PYTHON = {
    "_serialization/archive.py",
    "guarantee/_checks.py",
    "references/_models/distributions.py",
    "references/known.py",
    "references/parametric.py",
    "release/accounting.py",
    "release/bootstrap.py",
    "release/estimator.py",
    "release/intervals.py",
    "release/local.py",
    "release/model_file.py",
    "release/plan.py",
    "release/result.py",
    "release/sheet.py",
    "sources/_fingerprint.py",
    "sources/batches.py",
    "sources/holdout.py",
    "sources/spark/session.py",
    "utility/verdict.py",
}
"""Modules some of whose errors no command can raise: they are about objects that only Python can pass."""
ONLY_FROM_PYTHON = (
    "Call .collect() first",
    "Write pairs=[",
    "Write types={",
    "Write missing=[",
    "Write dialect=",
    'Use "optimal" or "laplace", or Optimal(...)',
    "Give the split of an earlier release",
    "Use Split.new(by=",
    "Use dipriv.Dialect(...)",
)
"""How remedies begin, in other modules, that are about values of a type that no option has."""
ERRORS = {name for name in dir(dipriv.errors) if name.endswith("Error")}


def texts(node: ast.expr | None) -> str:
    """All literal parts of an expression."""
    return " ".join(str(part.value) for part in ast.walk(node) if isinstance(part, ast.Constant)) if node else ""


def raised(source: Path = SOURCE) -> Iterator[tuple[str, str, str]]:
    """(place, remedy, remedy of the command line) of every error that is made in the library."""
    for path in sorted(source.rglob("*.py")):
        if "cli" in path.relative_to(source).parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS:
                remedy = node.args[1] if len(node.args) > 1 else None
                command = next((of.value for of in node.keywords if of.arg == "command"), None)
                yield f"{path.relative_to(source)}:{node.lineno}", texts(remedy), texts(command)


def test_options_are_in_remedies_of_the_command_line_only() -> None:
    found = list(raised())
    assert len(found) > 300
    assert sum(bool(command) for _, _, command in found) > 25
    in_python = [place for place, remedy, _ in found if OPTION.search(remedy) and "dipriv " not in remedy]
    assert in_python == []
    assert [place for place, _, command in found if ARGUMENT.search(command)] == []


def leaks(source: Path = SOURCE) -> list[str]:
    """Where the command line would print words of Python."""
    found = [(place, command or remedy) for place, remedy, command in raised(source)]
    return [
        place
        for place, told in found
        if OF_PYTHON.search(told)
        and place.partition(":")[0] not in ONLY_PYTHON
        and not told.startswith(ONLY_FROM_PYTHON)
    ]


def test_no_word_of_python_is_printed_on_the_command_line() -> None:
    assert leaks() == []
    places = {place.partition(":")[0] for place, remedy, command in raised() if OF_PYTHON.search(command or remedy)}
    assert places >= ONLY_PYTHON  # control: none is listed that has no such remedy


def test_a_new_leak_is_found(tmp_path: Path) -> None:
    (tmp_path / "new.py").write_text('raise InputError("It is wrong.", "Leave it out with drop=[...].")\n')
    assert leaks(tmp_path) == ["new.py:1"]
    (tmp_path / "new.py").write_text('raise InputError("It is wrong.", "Give drop=[...].", command="Give --drop.")\n')
    assert leaks(tmp_path) == []


@pytest.mark.parametrize("kind", [DiprivError, InputError, StorageError])
def test_both_remedies_stay_with_an_error(kind: type[DiprivError]) -> None:
    error = kind("It is wrong.", "Use drop=[...].", command="Use --drop.")
    same = pickle.loads(pickle.dumps(error))
    assert (str(same), same.command) == ("It is wrong.\nUse drop=[...].", "Use --drop.")
    assert kind("It is wrong.", "Mend it.").command == "Mend it."
