"""HTTP on 127.0.0.1: static files for everybody there, all else for those with the token.

The standard library's server is enough for one user, and the process that sees private tables loads no other package
for it. Nothing is logged. No URL has anything private in it: what is asked for is in headers and bodies, and a download
has a name that is random and works once.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import socketserver
import sys
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from dipriv.errors import DiprivError
from dipriv.studio import pages
from dipriv.studio.guard import ADDRESS, CHANGING, SAFE, Guard, RefusedError
from dipriv.studio.tabs import BLOCK, MAX_UPLOAD, STEPS, OutOfDateError, Tab, Tabs

MAX_FORM, MAX_FIELDS = 8 << 20, 20_000
"""Bytes and fields of a form."""
TICKET_SECONDS, MAX_TICKETS = 60.0, 100
TIMEOUT = 30.0
"""Seconds that a connection may say nothing."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
HTML, JSON, PLAIN = "text/html; charset=utf-8", "application/json", "text/plain; charset=utf-8"


class Server(ThreadingHTTPServer):
    """A studio at a port of 127.0.0.1: any free one for 0."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, tabs: Tabs, port: int = 0) -> None:
        super().__init__((ADDRESS, port), Handler)
        self.tabs = tabs
        self.guard = Guard.at(self.server_port)
        self.tickets = Tickets()

    def server_bind(self) -> None:
        """Bind without asking for the machine's name, which may take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a browser that hangs up is no error, and others were answered."""


class Tickets:
    """Random names of downloads, each for one request within a minute."""

    def __init__(self) -> None:
        self._given: dict[str, tuple[float, str, Path | bytes]] = {}
        self._lock = threading.Lock()

    def give(self, name: str, content: Path | bytes) -> str:
        """A name for this file."""
        ticket, now = secrets.token_urlsafe(32), time.monotonic()
        with self._lock:
            fresh = {key: value for key, value in self._given.items() if now - value[0] < TICKET_SECONDS}
            self._given = dict(list(fresh.items())[-MAX_TICKETS:]) | {ticket: (now, name, content)}
        return ticket

    def take(self, ticket: str) -> tuple[str, Path | bytes] | None:
        """The file, the first time."""
        with self._lock:
            found = self._given.pop(ticket, None)
        return None if found is None or time.monotonic() - found[0] > TICKET_SECONDS else found[1:]


class Body:
    """The body of a request, of a stated length."""

    def __init__(self, file: BufferedIOBase, length: int) -> None:
        self._file, self.left = file, length

    def read(self, size: int) -> bytes:
        """Some bytes; none at the end."""
        block = self._file.read(min(size, self.left))
        self.left -= len(block)
        return block

    def read_to_its_end(self, use: Callable[[], None]) -> None:
        """Use it; then read what was not: a browser listens for an answer only when it has sent all."""
        try:
            use()
        finally:
            while self.read(BLOCK):
                pass


class Handler(BaseHTTPRequestHandler):
    """One request: checked, then answered."""

    server: Server
    server_version, sys_version = "dipriv", ""
    timeout = TIMEOUT
    error_message_format, error_content_type = "%(code)d %(message)s\n", PLAIN

    def version_string(self) -> str:
        """Say nothing about versions."""
        return "dipriv"

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        """Answer a GET request."""
        self._answer()

    def do_POST(self) -> None:
        """Answer a POST request."""
        self._answer()

    def do_PUT(self) -> None:
        """Answer a PUT request."""
        self._answer()

    def _answer(self) -> None:
        try:
            self._route(self.command, urlsplit(self.path).path)
        except RefusedError as refused:
            self._send(refused.status, refused.text.encode(), PLAIN)
        except OSError:
            raise
        except Exception as error:  # its message may hold a cell
            sys.stderr.write(f"A request failed: {type(error).__name__}.\n")
            text = f"The studio failed: {type(error).__name__}. Load the page again."
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, text.encode(), PLAIN)

    def _route(self, method: str, path: str) -> None:
        guard = self.server.guard
        guard.check_host(self._headers)
        if method in SAFE and path in pages.STATIC:
            content, kind = pages.static(path)
            self._send(HTTPStatus.OK, content, kind)
            return
        guard.check_site(method, self._headers)
        if method in SAFE and (found := re.fullmatch(r"/file/([\w-]{20,80})", path)):
            self._send_file(found[1])
            return
        guard.check_token(self._headers)
        if method in CHANGING and path == "/tab":
            self._send_json({"tab": self.server.tabs.new()})
            return
        tab = self._tab()
        answer = _ROUTES.get((method, path.split("/")[1]))
        if answer is None:
            raise RefusedError(HTTPStatus.NOT_FOUND, "There is no such page.")
        answer(self, tab, path.split("/")[2:])

    def _view(self, tab: Tab, rest: list[str]) -> None:
        """A step, or the one that the tab is at."""
        if rest not in ([], *([step] for step in STEPS)):
            raise RefusedError(HTTPStatus.NOT_FOUND, "There is no such page.")
        with tab.lock:
            self._send_page(tab, rest[0] if rest else tab.step)

    def _progress(self, tab: Tab, rest: list[str]) -> None:
        with tab.lock:
            state, version = tab.state, tab.version
        known = {} if state is None else {"what": state.what, "done": state.done, "total": state.total}
        self._send_json({"version": version, "running": state is not None} | known)

    def _do(self, tab: Tab, rest: list[str]) -> None:
        text = self._body(MAX_FORM).decode("utf-8", "replace")
        try:
            fields = parse_qs(text, keep_blank_values=True, max_num_fields=MAX_FIELDS)
        except ValueError:
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The form has too many fields.") from None
        self._change(tab, lambda: tab.act("/".join(rest), fields))

    def _upload(self, tab: Tab, rest: list[str]) -> None:
        name = unquote((self._headers("X-Dipriv-Name") or [""])[0])
        body = Body(self.rfile, self._length(MAX_UPLOAD))
        self._change(tab, lambda: body.read_to_its_end(lambda: tab.upload(name, body)))

    def _ticket(self, tab: Tab, rest: list[str]) -> None:
        what = self._body(100).decode("utf-8", "replace")
        try:
            name, content = tab.download(what)
        except DiprivError:
            raise RefusedError(HTTPStatus.NOT_FOUND, "There is no such file.") from None
        self._send_json({"file": f"/file/{self.server.tickets.give(name, content)}"})

    def _change(self, tab: Tab, change: Callable[[], None]) -> None:
        out_of_date = False
        try:
            change()
        except OutOfDateError:
            out_of_date = True
        except DiprivError as error:
            content = pages.problem(error).encode("utf-8", "replace")
            self._send(HTTPStatus.UNPROCESSABLE_ENTITY, content, HTML, {"X-Dipriv-Version": str(tab.version)})
            return
        with tab.lock:
            self._send_page(tab, tab.step, out_of_date=out_of_date)

    def _tab(self) -> Tab:
        tab = self.server.tabs.find((self._headers("X-Dipriv-Tab") or [""])[0])
        if tab is None:
            raise RefusedError(HTTPStatus.GONE, "This tab is closed.")
        return tab

    def _headers(self, name: str) -> list[str]:
        return [str(value) for value in self.headers.get_all(name, [])]

    def _length(self, most: int) -> int:
        given = self._headers("Content-Length")
        if len(given) != 1 or not re.fullmatch(r"[0-9]{1,15}", given[0]):
            raise RefusedError(HTTPStatus.LENGTH_REQUIRED, "Send a body with its length.")
        if int(given[0]) > most:
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"At most {most:,} bytes are taken.")
        return int(given[0])

    def _body(self, most: int) -> bytes:
        length = self._length(most)
        body = self.rfile.read(length)
        if len(body) < length:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "The body is cut off.")
        return body

    def _send_page(self, tab: Tab, step: str, *, out_of_date: bool = False) -> None:
        content = pages.render(tab, step, out_of_date=out_of_date).encode("utf-8", "replace")
        status = HTTPStatus.CONFLICT if out_of_date else HTTPStatus.OK
        self._send(status, content, HTML, {"X-Dipriv-Step": step})

    def _send_json(self, content: Any) -> None:
        self._send(HTTPStatus.OK, json.dumps(content).encode(), JSON)

    def _send(self, status: HTTPStatus, content: bytes, kind: str, more: dict[str, str] | None = None) -> None:
        self._send_head(status, kind, len(content), more or {})
        self.wfile.write(content)

    def _send_file(self, ticket: str) -> None:
        found = self.server.tickets.take(ticket)
        if found is None:
            raise RefusedError(HTTPStatus.GONE, "This download was used or is too old: click again.")
        name, content = found
        disposition = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"}
        if isinstance(content, bytes):
            self._send(HTTPStatus.OK, content, "application/octet-stream", disposition)
            return
        try:
            file = content.open("rb")
        except OSError:
            raise RefusedError(HTTPStatus.GONE, "The file is gone.") from None
        with file:
            size = os.fstat(file.fileno()).st_size
            self._send_head(HTTPStatus.OK, "application/octet-stream", size, disposition)
            shutil.copyfileobj(file, self.wfile)

    def _send_head(self, status: HTTPStatus, kind: str, length: int, more: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in (HEADERS | more | {"Content-Type": kind, "Content-Length": str(length)}).items():
            self.send_header(name, value)
        self.end_headers()


_ROUTES: dict[tuple[str, str], Callable[[Handler, Tab, list[str]], None]] = {
    ("GET", "view"): Handler._view,
    ("GET", "progress"): Handler._progress,
    ("POST", "do"): Handler._do,
    ("PUT", "upload"): Handler._upload,
    ("POST", "ticket"): Handler._ticket,
}
