"""Describe the public surface as text that depends on the code alone, not on the Python version or the terminal."""

from __future__ import annotations

import enum
import inspect
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

import dipriv
from dipriv.cli import app

FOLDER = Path(__file__).parent
COMMANDS = FOLDER.parents[1] / "docs" / "reference" / "command-line.md"
"""The page of the documentation with the help of all commands."""
WIDTH = 100
"""Characters in a line of help."""

MODULES = (dipriv, dipriv.codecs, dipriv.kernels, dipriv.references)


def snapshots() -> dict[str, str]:
    """Return {path below this folder: text} of all snapshots."""
    api = "\n\n".join("\n".join(_module_lines(module)) for module in MODULES)
    return {"api.txt": f"{api}\n"} | {f"cli/{name}.txt": text for name, text in _help_pages()}


def stored() -> dict[str, str]:
    """Return the snapshots on record."""
    return {path.relative_to(FOLDER).as_posix(): path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.txt")}


def write(found: dict[str, str]) -> None:
    """Put these snapshots on record in place of the old ones."""
    for name in stored().keys() - found.keys():
        (FOLDER / name).unlink()
    for name, text in found.items():
        (FOLDER / name).parent.mkdir(exist_ok=True)
        (FOLDER / name).write_text(text, encoding="utf-8")


def page_of_commands(found: dict[str, str]) -> str:
    """The documentation's page of the command line: the help of each command."""
    pages = {name[4:-4].replace("-", " "): text for name, text in found.items() if name.startswith("cli/")}
    sections = [f"## {name}\n\n```console\n{text.rstrip()}\n```\n" for name, text in sorted(pages.items())]
    return (
        "# Command line\n\nThe extra `cli` brings the command `dipriv`; `python -m dipriv` is the same. "
        "`dipriv COMMAND --help` prints what\nis below. [Exit codes](exit-codes.md) have a page of their own, and the "
        "[tutorial](../tutorial.md) shows the commands at work.\nThis page is written by `make snapshots`.\n\n"
        + "\n".join(sections)
    )


def _module_lines(module: Any) -> Iterator[str]:
    yield f"# {module.__name__}"
    for name in sorted(module.__all__):
        yield from _object_lines(name, getattr(module, name))


def _object_lines(name: str, value: Any) -> Iterator[str]:
    if inspect.ismodule(value):
        yield f"{name}: module"
    elif inspect.isclass(value):
        yield from _class_lines(name, value)
    elif inspect.isfunction(value):
        yield f"def {name}{_signature(value)}"
    else:
        yield f"{name}: {type(value).__name__ if typing.get_origin(value) is None else 'type alias'}"


def _class_lines(name: str, cls: type) -> Iterator[str]:
    bases = ", ".join(base.__name__ for base in cls.__bases__ if base not in (object, typing.Generic))
    yield f"class {name}({bases})" if bases else f"class {name}"
    if issubclass(cls, enum.Enum):
        yield from (f"    {member.name}" for member in cls)
    elif getattr(cls.__init__, "__module__", "").startswith("dipriv") or hasattr(cls, "__dataclass_fields__"):
        yield f"    {name}{_signature(cls)}"
    for member, value in sorted(_own_members(cls).items()):
        if isinstance(value, property):
            yield f"    {member}: property"
        elif isinstance(value, classmethod | staticmethod):
            yield f"    {type(value).__name__} {member}{_signature(value.__func__)}"
        else:
            yield f"    def {member}{_signature(value)}"


def _own_members(cls: type) -> dict[str, Any]:
    """Public methods and properties that dipriv defines, inherited ones included."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            function = getattr(value, "fget", None) or getattr(value, "__func__", value)
            if not name.startswith("_") and inspect.isfunction(function) and function.__module__.startswith("dipriv"):
                found[name] = value
    return found


def _signature(of: Any) -> str:
    signature = inspect.signature(of)
    parts: list[str] = []
    before: Any = None
    for parameter in signature.parameters.values():
        kind = parameter.kind
        if kind is parameter.KEYWORD_ONLY and before not in (kind, parameter.VAR_POSITIONAL):
            parts.append("*")
        if before is parameter.POSITIONAL_ONLY and kind is not before:
            parts.append("/")
        stars = "*" if kind is parameter.VAR_POSITIONAL else "**" if kind is parameter.VAR_KEYWORD else ""
        default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
        parts.append(f"{stars}{parameter.name}{_annotation(': ', parameter.annotation)}{default}")
        before = kind
    return f"({', '.join(parts)}){'' if inspect.isclass(of) else _annotation(' -> ', signature.return_annotation)}"


def _annotation(before: str, annotation: Any) -> str:
    if annotation is inspect.Signature.empty:
        return ""
    return before + (annotation if isinstance(annotation, str) else inspect.formatannotation(annotation))


def _default(value: Any) -> str:
    """Return the default as written in code, or dots where its repr is an address or made by a default factory."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    shown = repr(value)
    return "..." if shown.startswith("<") else shown


def _help_pages() -> Iterator[tuple[str, str]]:
    """Yield the help of each command, from Click's plain formatter: no boxes, no colours, one width."""
    yield from _pages_below(typer.main.get_command(app), "dipriv", None)


def _pages_below(command: Any, name: str, parent: Any) -> Iterator[tuple[str, str]]:
    command.rich_markup_mode = None
    context = command.context_class(
        command,
        info_name=name,
        parent=parent,
        terminal_width=WIDTH,
        max_content_width=WIDTH,
        **command.context_settings,
    )
    path = context.command_path.replace(" ", "-")
    yield path, f"{command.get_help(context).rstrip()}\n"
    for child, below in sorted(getattr(command, "commands", {}).items()):
        yield from _pages_below(below, child, context)
