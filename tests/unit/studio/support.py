"""A studio in this process, its requests as bytes on a socket, and jobs that run at once."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from dipriv._base.progress import no_progress
from dipriv.studio.files import PrivateFolder, UserFiles
from dipriv.studio.server import Server
from dipriv.studio.tabs import Settings, Tabs
from dipriv.studio.worker import Worker, _outcome

MARKER = "zq7-marker-xv"
"""A cell that may be on the page alone."""


class AtOnce(Worker):
    """Does jobs at once, in this thread."""

    def start(self, job: Any, *arguments: Any) -> None:
        self.finished(_outcome(job, arguments, no_progress))


@dataclass(frozen=True)
class Answer:
    """An answer, whole."""

    status: int
    headers: dict[str, str]
    text: str
    content: bytes


@dataclass
class Client:
    """One tab of a browser."""

    server: Server
    tab: str = ""

    def ask(
        self, method: str, path: str, body: bytes | str | None = None, *, leave_out: str = "", **changed: str
    ) -> Answer:
        """Send a request as the page does, but for the headers that are changed or left out."""
        guard = self.server.guard
        headers = {"Host": guard.host, "Authorization": f"Bearer {guard.token}", "X-Dipriv-Tab": self.tab}
        headers |= {"Sec-Fetch-Site": "same-origin"}
        headers |= {"Origin": guard.origin} if method != "GET" else {}
        headers |= {name.replace("_", "-"): value for name, value in changed.items()}
        headers.pop(leave_out, None)
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=60)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        content = body.encode() if isinstance(body, str) else body
        if content is not None and "Content-Length" not in headers:
            headers["Content-Length"] = str(len(content))
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders(content)
        answer = connection.getresponse()
        read = answer.read()
        connection.close()
        return Answer(answer.status, dict(answer.getheaders()), read.decode("utf-8", "replace"), read)

    def begin(self) -> Client:
        """Open a tab."""
        self.tab = json.loads(self.ask("POST", "/tab", "").text)["tab"]
        return self

    @property
    def version(self) -> str:
        return str(json.loads(self.ask("GET", "/progress").text)["version"])

    def do(self, action: str, **fields: str) -> Answer:
        """Send a form that was made from the present state."""
        return self.ask("POST", f"/do/{action}", urlencode({"version": self.version} | fields))

    def upload(self, name: str, content: bytes) -> Answer:
        return self.ask("PUT", "/upload", content, X_Dipriv_Name=quote(name))

    def download(self, what: str) -> bytes:
        return self.ask("GET", json.loads(self.ask("POST", "/ticket", what).text)["file"]).content


@contextmanager
def studio(root: Path, folder: Path, file: Path | None = None, **settings: Any) -> Iterator[Server]:
    """A studio whose private folder is below `root`."""
    with PrivateFolder.made(root) as private:
        tabs = Tabs(Settings(UserFiles.of(file, folder), make_worker=AtOnce, **settings), private)
        with Server(tabs) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            try:
                yield server
            finally:
                server.shutdown()
                thread.join()
                tabs.close()
