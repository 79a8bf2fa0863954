"""Public names are documented: sections of numpydoc, and every refusal that is part of the interface."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import dipriv

SPECS = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module, names in (
        (dipriv.references, ("Private", "Known", "Empirical", "Parametric", "Grouped")),
        (dipriv.kernels, ("Optimal", "OptimalColumns", "OptimalJoint", "Laplace")),
    )
    for name in names
}
"""What users write in place of a name."""

CHECKED = {
    *("dipriv.audit", "dipriv.compare", "dipriv.infer_schema", "dipriv.inspect"),
    *("dipriv.load_local", "dipriv.privatize", "dipriv.privatize_file"),
    *(f"dipriv.DIP.{name}" for name in ("fit", "transform", "transform_batches", "fit_transform", "export_local")),
    *(
        "dipriv.Guarantee.power",
        "dipriv.Guarantee.from_dict",
        "dipriv.LocalReference.privatize",
        "dipriv.Release.write",
    ),
    *(f"dipriv.Schema.{name}" for name in ("from_dict", "from_json", "from_toml", "save", "load")),
    *(f"dipriv.Split.{name}" for name in ("new", "held_out", "scores", "save", "load")),
    *(f"dipriv.Ledger.{name}" for name in ("open", "create", "preview", "split_key", "reserve", "commit", "fail")),
    *(f"dipriv.Ledger.{name}" for name in ("set_budget", "dataset", "datasets", "records", "sizes", "fingerprint_key")),
}
"""Functions that refuse some of their arguments, or what they find."""

CLASSES = {
    f"dipriv.{name}": value
    for name in dipriv.__all__
    if inspect.isclass(value := getattr(dipriv, name)) and not issubclass(value, Exception)
}

RESULTS = {"Audit", "Comparison", "Forecast", "Inspection", "Interval", "LocalReference", "Release", "Sheet"}
"""Classes that dipriv makes, and users read."""

NOT_CALLED = {"dipriv.Ledger"}
"""Classes that are not made by calling them."""


def functions() -> dict[str, Any]:
    """Return {name: function} of the public functions, and of the methods that public classes define."""
    found = {f"dipriv.{name}": getattr(dipriv, name) for name in dipriv.__all__}
    found = {name: value for name, value in found.items() if inspect.isfunction(value)}
    return found | {f"{name}.{own}": value for name, cls in CLASSES.items() for own, value in methods(cls)}


def methods(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods that dipriv defines."""
    for name, value in vars(cls).items():
        function = getattr(value, "__func__", value)
        if not name.startswith("_") and inspect.isfunction(function):
            yield name, function


def sections(thing: Any) -> set[str]:
    """Return the titles in a docstring."""
    return set(re.findall(r"^(\w+)\n-+$", inspect.cleandoc(thing.__doc__ or ""), re.MULTILINE))


def expected(name: str, function: Any) -> set[str]:
    """Return the sections that a function needs: by its signature, and by whether it checks something."""
    signature = inspect.signature(function)
    parameters = set(signature.parameters) - {"self", "cls"}
    gives = signature.return_annotation not in ("None", None, inspect.Signature.empty)
    needed = {"Parameters"} if parameters else set()
    return needed | ({"Returns"} if parameters and gives else set()) | ({"Raises"} if name in CHECKED else set())


@pytest.mark.parametrize("name", sorted(functions()))
def test_functions_say_what_they_take_give_and_refuse(name: str) -> None:
    function = functions()[name]
    assert function.__doc__
    assert expected(name, function) <= sections(function)


@pytest.mark.parametrize("name", sorted(CLASSES.keys() - NOT_CALLED))
def test_classes_say_what_they_are_made_of(name: str) -> None:
    cls = CLASSES[name]
    assert cls.__doc__
    if name.removeprefix("dipriv.") in RESULTS:
        assert "Attributes" in sections(cls)
    elif not issubclass(cls, Warning):
        assert "Parameters" in sections(cls)


@pytest.mark.parametrize("name", sorted(SPECS))
def test_specs_name_every_field(name: str) -> None:
    cls = SPECS[name]
    text = inspect.cleandoc(cls.__doc__).partition("Parameters\n")[2].partition("\nRaises")[0]
    assert {field.name for field in dataclasses.fields(cls) if field.init} <= set(re.findall(r"\w+", text))


@pytest.mark.parametrize("name", ["privatize", "privatize_file", "audit", "compare", "load_local", "inspect"])
def test_every_parameter_is_described(name: str) -> None:
    text = sections_text(getattr(dipriv, name))
    names = set(inspect.signature(getattr(dipriv, name)).parameters)
    assert names <= set(re.findall(r"\w+", text))


def sections_text(function: Any) -> str:
    """Return the names before the colons of the section of parameters."""
    text = inspect.cleandoc(function.__doc__).partition("Parameters\n")[2].partition("\nReturns")[0]
    return "\n".join(line.partition(" : ")[0] for line in text.splitlines() if not line.startswith(" "))


def test_the_list_of_functions_that_check_is_not_stale() -> None:
    assert functions().keys() >= CHECKED


def test_a_missing_section_is_found() -> None:
    """The control."""

    def bare(x: int) -> int:
        """Parameters and Returns are only mentioned here."""
        return x

    assert expected("dipriv.privatize", bare) == {"Parameters", "Returns", "Raises"}
    assert sections(bare) == set()
