"""What each tab of the browser has open. Tabs share nothing but the ledger and the user's folder.

A tab has a version, which grows with every change. A form is acted on only if it was made from the current version, so
a second click, a form that was left open, or a copy of the tab changes nothing, and spends nothing.
"""

from __future__ import annotations

import secrets
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from dipriv._base.atomic_write import create
from dipriv.auditing.results import Audit
from dipriv.errors import DiprivError, InputError
from dipriv.schema import Schema
from dipriv.sources._formats import format_of
from dipriv.studio import forms, work
from dipriv.studio.choices import NOTHING, Choices
from dipriv.studio.files import PrivateFolder, UserFiles
from dipriv.studio.repeat import as_command, as_python, schema_name
from dipriv.studio.work import Look, Released
from dipriv.studio.worker import Failure, State, Worker
from dipriv.utility.plan import Forecast

STEPS = ("table", "question", "budget", "release", "ledger")
MAX_UPLOAD = 200 << 20
"""Bytes; larger files are opened by their path."""
MAX_TABS = 8
"""Each has a process; beyond that the tab that was idle for longest is closed."""
MAX_NAME = 150
BLOCK = 1 << 20


class Body(Protocol):
    """What a request sends: at most `left` bytes more."""

    left: int

    def read(self, size: int) -> bytes:
        """Some bytes; none at the end."""
        ...


class OutOfDateError(Exception):
    """A form was made from an older state of its tab."""


@dataclass(frozen=True)
class Settings:
    """What a studio was started with."""

    files: UserFiles
    ledger: str | None = None
    ledger_shown: str | None = None
    """The same as it may be printed: without a password; None for the user's own."""
    schema: Schema = NOTHING
    make_worker: Callable[[Callable[[Any], None]], Worker] = Worker


@dataclass(frozen=True)
class Done:
    """A release, and how to repeat it."""

    released: Released
    schema: Schema
    command: str
    python: str


@dataclass(eq=False)
class Tab:
    """One tab: a table, what was chosen about it, and what came of it."""

    settings: Settings
    folder: Path
    step: str = "table"
    version: int = 0
    choices: Choices | None = None
    look: Look | None = field(default=None, repr=False)
    plan: Forecast | None = None
    done: Done | None = None
    audit: Audit | None = field(default=None, repr=False)
    failure: Failure | None = None
    job: str = ""
    used: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.worker = self.settings.make_worker(self._finished)
        self.lock = self.worker.lock
        self._then: Callable[[Any], None] = lambda outcome: None

    @property
    def state(self) -> State | None:
        """How far the running job is."""
        return self.worker.state

    @property
    def ready(self) -> tuple[Choices, Look]:
        """The open table; refuses if there is none."""
        if self.choices is None or self.look is None:
            raise InputError("no table is open.", "Choose one first.")
        return self.choices, self.look

    @property
    def released_names(self) -> list[str]:
        """The columns that are privatized."""
        choices, look = self.ready
        left_out = {*choices.keep, *choices.drop, *choices.schema.left_out, choices.unit}
        return [column.name for column in look.inspection.columns if column.name not in left_out]

    def act(self, action: str, fields: Mapping[str, Sequence[str]]) -> None:
        """Do what a form asks for.

        Raises
        ------
        OutOfDateError : the form was made from an older state, or a job is running.
        DiprivError : what is wrong in the form; the page that has it stays.
        """
        form = forms.Form(fields)
        with self.lock:
            if form.text("version") != str(self.version):
                raise OutOfDateError
            if action not in _ACTIONS:
                raise InputError("this is not an action of the studio.", "Load the page again.")
            if self.state is not None and action != "stop":
                raise OutOfDateError
            self.version += 1
            self.failure = None
            _ACTIONS[action](self, form)

    def open_by_path(self, form: forms.Form) -> None:
        """Open a table of the user's folder."""
        path = self.settings.files.table(form.text("path"))
        self._open(Choices(path, path.name))

    def upload(self, name: str, body: Body) -> None:
        """Store a table that was sent, for its owner only, and open it."""
        with self.lock:
            if self.state is not None:
                raise OutOfDateError
            self.version += 1
            self.failure = None
            path = self._stored(name, body)
            self._open(Choices(path, name, is_upload=True))

    def close_table(self, form: forms.Form) -> None:
        """Forget the table, and remove what was uploaded."""
        shutil.rmtree(self.folder / "upload", ignore_errors=True)
        self.choices = self.look = self.plan = self.done = self.audit = None
        self.step = "table"

    def describe(self, form: forms.Form) -> None:
        """Take what is said about the columns; read the file again if it is written in another way."""
        choices, look = self.ready
        changed = forms.of_table(form, choices, look.inspection.columns)
        reread = form.text("go") == "again" or (changed.dialect, changed.types) != (choices.dialect, choices.types)
        self._take(changed)
        self.step = "table" if form.text("go") == "again" else "question"
        if reread:
            self._start("look", self._looked, work.look, changed)

    def ask(self, form: forms.Form) -> None:
        """Take the question; then make the plan."""
        choices, _ = self.ready
        self._take(forms.of_question(form, choices))
        self.step = "question"
        if form.text("go") == "budget":
            self.make_plan(form)

    def make_plan(self, form: forms.Form) -> None:
        """Forecast several ε."""
        choices, _ = self.ready
        self.step = "budget"
        self._start("plan", self._planned, work.plan, choices)

    def budget(self, form: forms.Form) -> None:
        """Take ε and δ."""
        choices, _ = self.ready
        changed = forms.of_budget(form, choices)
        if changed.delta != choices.delta:
            self._take(changed)
        self.choices = changed
        self.step = "release"

    def release(self, form: forms.Form) -> None:
        """Spend ε and release."""
        choices, _ = self.ready
        chosen = forms.of_release(form, choices)
        output = self.settings.files.output(chosen.output)
        self.choices, self.done, self.step = chosen, None, "release"
        report = self.folder / "report.html"
        self._start("release", self._released, work.release, chosen, output, report, self.settings.ledger)

    def attack(self, form: forms.Form) -> None:
        """Audit such a release."""
        choices, _ = self.ready
        self.step = "release"
        self._start("audit", self._audited, work.audit, choices)

    def stop(self, form: forms.Form) -> None:
        """Stop the job."""
        self.worker.stop()

    def close(self) -> None:
        """End the process of the tab and remove its files."""
        self.worker.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def repeated(self) -> tuple[str, str]:
        """The command and the Python of what is chosen now."""
        choices, _ = self.ready
        table = choices.name if choices.is_upload else self.settings.files.shown(choices.path)
        ledger = self.settings.ledger_shown
        return as_command(choices, table, ledger), as_python(choices, table, ledger)

    def download(self, what: str) -> tuple[str, Path | bytes]:
        """The name of a file that can be downloaded, and where it is, or its content."""
        choices, _ = self.ready
        if what == "schema":
            return schema_name(choices), choices.schema.to_toml().encode()
        if self.done is not None:
            released = self.done.released
            if what == "schema-of-release":
                return schema_name(choices), self.done.schema.to_toml().encode()
            if what == "report" and released.report is not None:
                return "report-private.html", released.report
            if what.isdecimal() and int(what) < len(released.files):
                path = released.files[int(what)]
                return path.name, path
        raise InputError("there is no such file.", "Load the page again.")

    def _open(self, choices: Choices) -> None:
        format_of(choices.name)
        self.plan, self.done, self.audit, self.look, self.step = None, None, None, None, "table"
        output = self.settings.files.free_name(choices.name)
        self.choices = replace(choices, schema=self.settings.schema, output=output)
        self._start("look", self._looked, work.look, self.choices)

    def _stored(self, name: str, body: Body) -> Path:
        if not name.isprintable() or Path(name).name != name or name.startswith(".") or len(name) > MAX_NAME:
            raise InputError("the name of the file cannot be used.", "Rename the file.")
        format_of(name)
        folder = self.folder / "upload"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        with create(folder / name) as file:
            while block := body.read(BLOCK):
                file.write(block)
        if body.left:
            shutil.rmtree(folder, ignore_errors=True)
            raise InputError("the upload was cut off.", "Try it again.")
        return folder / name

    def _take(self, choices: Choices) -> None:
        """Other choices have another plan."""
        if choices != self.choices:
            self.plan, self.audit = None, None
        self.choices = choices

    def _start(self, job: str, then: Callable[[Any], None], function: Callable[..., Any], *arguments: Any) -> None:
        self.job, self._then = job, then
        self.worker.start(function, *arguments)

    def _finished(self, outcome: Any) -> None:
        self.version += 1
        if not isinstance(outcome, Failure):
            self._then(outcome)
            return
        self.failure = outcome
        if self.look is None:
            self.choices = None

    def _looked(self, look: Look) -> None:
        self.look = look
        if self.choices is None:
            return
        names = {column.name for column in look.inspection.columns}
        others = [name for name in forms.declared(self.choices.schema) if name not in names]
        if others:
            self.choices = replace(self.choices, schema=NOTHING)
            self.failure = Failure(
                f"The schema names {others[0]!r}, which is not a column of this table.", "It is not used here."
            )

    def _planned(self, plan: Forecast) -> None:
        self.plan = plan
        if self.choices is not None and plan.recommended is not None:
            self.choices = replace(self.choices, epsilon=plan.recommended)

    def _released(self, released: Released) -> None:
        choices, _ = self.ready
        self.done, self.step = Done(released, choices.schema, *self.repeated()), "release"
        self.choices = replace(choices, output=self.settings.files.free_name(choices.name))

    def _audited(self, audit: Audit) -> None:
        self.audit = audit


_ACTIONS: dict[str, Callable[[Tab, forms.Form], None]] = {
    "open": Tab.open_by_path,
    "close": Tab.close_table,
    "table": Tab.describe,
    "question": Tab.ask,
    "plan": Tab.make_plan,
    "budget": Tab.budget,
    "release": Tab.release,
    "audit": Tab.attack,
    "stop": Tab.stop,
}


class Tabs:
    """All tabs of a studio, by names that cannot be guessed."""

    def __init__(self, settings: Settings, folder: PrivateFolder) -> None:
        self.settings = settings
        self._folder = folder
        self._tabs: dict[str, Tab] = {}
        self._lock = threading.Lock()

    def new(self) -> str:
        """A new tab, with the file of the command line."""
        name = secrets.token_hex(16)
        tab = Tab(self.settings, self._folder.of_tab(name))
        with self._lock:
            self._tabs[name] = tab
            idle = [one for one, of in self._tabs.items() if of.state is None and one != name]
            oldest = min(idle, key=lambda one: self._tabs[one].used, default=None)
            closed = self._tabs.pop(oldest) if len(self._tabs) > MAX_TABS and oldest is not None else None
        if closed is not None:
            closed.close()
        if self.settings.files.named is not None:
            try:
                tab.act("open", {"version": ["0"], "path": [str(self.settings.files.named)]})
            except DiprivError as error:
                tab.failure = Failure(error.fault, error.command)
        return name

    def find(self, name: str) -> Tab | None:
        """A tab by its name."""
        with self._lock:
            tab = self._tabs.get(name)
        if tab is not None:
            tab.used = time.monotonic()
        return tab

    def close(self) -> list[str]:
        """End all jobs; what those that were running said."""
        with self._lock:
            tabs, self._tabs = list(self._tabs.values()), {}
        running = [tab for tab in tabs if tab.state is not None]
        for tab in tabs:
            tab.close()
        return [note for tab in running if tab.failure is not None for note in tab.failure.notes]
