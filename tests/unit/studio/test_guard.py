"""Who is refused: other hosts, other pages, requests without the token, paths outside, and more than the limits."""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from dipriv.errors import InputError
from dipriv.ledger import Ledger
from dipriv.studio import pages, server, tabs, work
from dipriv.studio.files import PrivateFolder, UserFiles
from dipriv.studio.run import run
from dipriv.studio.server import Server, Tickets
from dipriv.studio.tabs import MAX_TABS, MAX_UPLOAD, Settings
from tests.unit.studio.support import MARKER, Client, studio

TABLE = f"name,age\n{MARKER},30\n" + "".join(f"p{row % 7},{20 + row % 50}\n" for row in range(300))
PRIVATE = [("GET", "/view"), ("GET", "/progress"), ("POST", "/do/open"), ("PUT", "/upload"), ("POST", "/ticket")]
"""A request of each route that is not static; `/tab` and `/file` are tested below."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "people.csv").write_text(TABLE)
    (tmp_path / "secret.csv").write_text(TABLE)
    Ledger.create(tmp_path / "ledger.db").close()
    return tmp_path


@pytest.fixture
def running(folder: Path) -> Iterator[Server]:
    with studio(folder / "cache", folder / "mine", ledger=str(folder / "ledger.db")) as found:
        yield found


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A tab for requests that change nothing."""
    folder = tmp_path_factory.mktemp("asked")
    with studio(folder / "cache", folder) as found:
        yield Client(found).begin()


@pytest.fixture(autouse=True)
def _no_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports take seconds; they are tested in the browser."""
    monkeypatch.setattr(work, "_write_report", lambda *_: "")


@pytest.fixture
def client(running: Server) -> Client:
    return Client(running).begin()


def test_all_routes_are_tried_below() -> None:
    assert {(method, path.split("/")[1]) for method, path in PRIVATE} == set(server._ROUTES)


def test_it_listens_on_this_machine_alone(running: Server) -> None:
    assert running.socket.getsockname()[0] == "127.0.0.1"
    assert running.socket.family == socket.AF_INET


@pytest.mark.parametrize(
    ("status", "changed"),
    [
        (401, {"leave_out": "Authorization"}),
        (401, {"Authorization": "Bearer "}),
        (401, {"Authorization": "Bearer é"}),
        (421, {"Host": "evil.example"}),
        (421, {"Host": "localhost:{port}"}),
        (421, {"leave_out": "Host"}),
        (403, {"Origin": "http://evil.example"}),
        (403, {"Origin": "http://127.0.0.1:1"}),
        (403, {"Origin": "null"}),
        (403, {"Sec_Fetch_Site": "cross-site"}),
        (403, {"Sec_Fetch_Site": "same-site"}),
        (501, {"Transfer_Encoding": "chunked"}),
    ],
    ids=str,
)
def test_others_are_refused(asked: Client, status: int, changed: dict[str, str]) -> None:
    changed = {name: value.format(port=asked.server.server_port) for name, value in changed.items()}
    before = len(asked.server.tabs._tabs)
    for method, path in [*PRIVATE, ("POST", "/tab")]:
        body = None if method == "GET" else ""
        assert asked.ask(method, path, body, **changed).status == status, (method, path)
    assert len(asked.server.tabs._tabs) == before


def test_control_the_page_itself_is_not_refused(asked: Client) -> None:
    for method, path in PRIVATE:
        answer = asked.ask(method, path, None if method == "GET" else "")
        assert answer.status not in (401, 403, 421, 501), (method, path)


def test_what_changes_something_must_say_its_origin(asked: Client) -> None:
    for method, path in PRIVATE:
        assert asked.ask(method, path, "", leave_out="Origin").status == (403 if method != "GET" else 200)


def test_other_sites_get_no_permission_to_read(asked: Client) -> None:
    for method in ("OPTIONS", "HEAD", "DELETE"):
        answer = asked.ask(method, "/view", Origin="http://evil.example")
        assert answer.status == 501
        assert not any(name.lower().startswith("access-control") for name in answer.headers)
    answer = asked.ask("GET", "/view")
    assert not any(name.lower().startswith("access-control") for name in answer.headers)
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_static_files_need_the_right_host_and_have_a_strict_policy(asked: Client) -> None:
    for path in pages.STATIC:
        answer = asked.ask("GET", path, leave_out="Authorization")
        assert answer.status == 200
        assert "unsafe" not in answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["Cache-Control"] == "no-store"
        assert asked.ask("GET", path, Host="evil.example").status == 421
    assert asked.ask("GET", "/../files.py").status == 404
    assert asked.ask("GET", "/static/studio.js").status == 404


@pytest.mark.parametrize(
    "path",
    ["../secret.csv", "/etc/passwd", "link.csv", "a\0b.csv", "x" * 5000, "", "none.csv"],
    ids=lambda path: repr(path[:9]),
)
def test_no_file_is_read_but_those_of_the_users_folder(client: Client, folder: Path, path: str) -> None:
    (folder / "mine" / "link.csv").symlink_to(folder / "secret.csv")
    answer = client.do("open", path=path)
    assert 'role="alert"' in answer.text
    assert MARKER not in answer.text
    assert "people.csv" in client.do("open", path="people.csv").text  # control


@pytest.mark.parametrize("output", ["../out.csv", "/tmp/out.csv", "people.csv", "", "link/out.csv", "out.nothing"])
def test_no_file_is_written_but_in_the_users_folder(client: Client, folder: Path, output: str) -> None:
    (folder / "other").mkdir()
    (folder / "mine" / "link").symlink_to(folder / "other")
    client.do("open", path="people.csv")
    before = sorted(folder.rglob("*"))
    assert 'role="alert"' in client.do("release", output=output).text
    assert sorted(folder.rglob("*")) == before
    with Ledger.open(folder / "ledger.db") as ledger:
        assert not ledger.datasets()


def test_limits_of_bodies(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    too_long = str(MAX_UPLOAD + 1)
    assert client.ask("PUT", "/upload", Content_Length=too_long, X_Dipriv_Name="a.csv").status == 413
    assert client.ask("POST", "/do/open", Content_Length=str(server.MAX_FORM + 1)).status == 413
    assert client.ask("POST", "/do/open", Content_Length="-1").status == 411
    assert client.ask("POST", "/do/open", leave_out="Content-Length").status == 411
    assert client.ask("POST", "/do/open", "&".join(["a=b"] * (server.MAX_FIELDS + 1))).status == 413
    for name in ("../a.csv", ".a.csv", "a/b.csv", "a\n.csv", "a.exe", "x" * 200 + ".csv", ""):
        assert 'role="alert"' in client.upload(name, TABLE.encode()).text
    monkeypatch.setattr(work, "MAX_ROWS", 300)
    assert "too large for the studio" in client.upload("a.csv", TABLE.encode()).text
    monkeypatch.setattr(work, "MAX_ROWS", 301)
    assert "301 rows" in client.upload("a.csv", TABLE.encode()).text


def test_files_of_a_studio_are_for_its_owner_and_gone_at_its_end(folder: Path) -> None:
    with studio(folder / "cache", folder / "mine") as running:
        client = Client(running).begin()
        client.upload("a.csv", TABLE.encode())
        stored = list((folder / "cache").rglob("*"))
        assert [path.name for path in stored].count("a.csv") == 1
        for path in stored:
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 or path.parent == folder / "cache"
        assert stat.S_IMODE((folder / "cache").stat().st_mode) == 0o700
        client.do("close")
        assert not list((folder / "cache").rglob("a.csv"))
    assert [path.name for path in (folder / "cache").iterdir()] == ["lock"]


def test_what_a_crash_left_behind_is_removed_at_the_next_start(tmp_path: Path) -> None:
    left = tmp_path / "left"
    left.mkdir()
    (left / "lock").touch()
    (left / "private.csv").write_text(TABLE)
    (tmp_path / "unfinished").mkdir()
    with PrivateFolder.made(tmp_path) as first, PrivateFolder.made(tmp_path) as second:
        assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == sorted(
            [first.path.name, second.path.name]
        )


def test_a_download_has_a_name_that_works_once(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client.do("open", path="people.csv")
    path = json.loads(client.ask("POST", "/ticket", "schema").text)["file"]
    assert re.fullmatch(r"/file/[\w-]{43}", path)
    assert client.ask("GET", path, leave_out="Authorization").status == 200
    assert client.ask("GET", path).status == 410
    assert client.ask("GET", "/file/" + "a" * 43).status == 410
    for what in ("report", "0", "../../secret.csv", "-1", ""):
        assert client.ask("POST", "/ticket", what).status == 404
    tickets = Tickets()
    late = tickets.give("a", b"a")
    monkeypatch.setattr(server, "TICKET_SECONDS", -1.0)
    assert tickets.take(late) is None


def test_tabs_do_not_mix(client: Client) -> None:
    other = Client(client.server).begin()
    client.do("open", path="people.csv")
    assert MARKER in client.ask("GET", "/view").text
    assert MARKER not in other.ask("GET", "/view").text
    assert Client(client.server, "0" * 32).ask("GET", "/view").status == 410
    assert Client(client.server, "").ask("GET", "/view").status == 410
    for _ in range(MAX_TABS):
        Client(client.server).begin()
    assert client.ask("GET", "/view").status == 410  # the one that was idle for longest


def test_a_second_click_does_nothing(client: Client, folder: Path) -> None:
    client.do("open", path="people.csv")
    old = client.version
    fields = f"version={old}&output="
    assert client.ask("POST", "/do/release", f"{fields}one.csv").status == 200
    again = client.ask("POST", "/do/release", f"{fields}two.csv")
    assert again.status == 409
    assert "Nothing was done" in again.text
    assert (folder / "mine" / "one.csv").exists()
    assert not (folder / "mine" / "two.csv").exists()
    with Ledger.open(folder / "ledger.db") as ledger:
        assert [one.releases for one in ledger.datasets()] == [1]


def test_no_cell_is_printed_and_errors_say_their_class_alone(
    client: Client, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client.do("open", path="people.csv")
    client.ask("GET", f"/view?{MARKER}")

    def broken(*_: Any) -> Any:
        raise ValueError(MARKER)

    monkeypatch.setattr(work, "plan", broken)
    answer = client.do("plan")
    assert "ValueError" in answer.text
    assert MARKER not in answer.text
    monkeypatch.setattr(tabs.Tab, "repeated", broken)
    answer = client.ask("GET", "/view/release")
    assert (answer.status, MARKER in answer.text) == (500, False)
    printed = capfd.readouterr()
    assert MARKER not in printed.out + printed.err
    assert "A request failed: ValueError." in printed.err


def test_names_of_columns_are_text_and_pages_have_no_inline_code(client: Client, folder: Path) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    text = TABLE.replace("name", f'"{hostile}"', 1)
    (folder / "mine" / "hostile.csv").write_text(text)
    seen = client.do("open", path="hostile.csv").text
    seen += client.do("question", target="age", one="age", other=hostile).text
    seen += (
        client.do("plan").text + client.do("release", output="out.csv").text + client.ask("GET", "/view/ledger").text
    )
    assert "<img" not in seen
    assert "&lt;img" in seen
    assert "Released" in seen
    page = client.ask("GET", "/").text
    assert not re.search(r"<script(?! src=)|\sstyle=|<style|\son\w+=(?!alert)|javascript:", seen + page)


def test_every_field_has_a_label(client: Client) -> None:
    client.do("open", path="people.csv")
    pages_seen = [client.ask("GET", "/view/table").text, client.ask("GET", "/view/question").text]
    pages_seen += [client.do("plan").text, client.ask("GET", "/view/release").text]
    for page in pages_seen:
        fields = re.findall(r"<(?:input|select|textarea|meter|progress)\b[^>]*>", page)
        assert len(fields) > 3
        for field in fields:
            found = re.search(r'id="([^"]+)"', field)
            named = 'type="hidden"' in field or "aria-label" in field
            assert named or (found and f'for="{found[1]}"' in page), field
        ids = re.findall(r'\sid="([^"]+)"', page)
        assert len(ids) == len(set(ids))


def test_the_folder_is_that_of_the_file_and_lists_its_tables(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder / "mine")
    (folder / "mine" / ".hidden.csv").touch()
    (folder / "mine" / "notes.md").touch()
    os.mkdir(folder / "mine" / "folder.csv")
    assert UserFiles.of(None, None).tables() == ["people.csv"]
    files = UserFiles.of(folder / "secret.csv", None)
    assert files.folder == folder
    named = UserFiles.of(folder / "secret.csv", folder / "mine")
    assert named.table(str(folder / "secret.csv")) == folder / "secret.csv"  # the user named it


def test_the_browser_is_opened_by_a_file_that_its_owner_alone_can_read(
    folder: Path, running: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "user"))
    monkeypatch.setenv("DISPLAY", ":0")
    opened: list[tuple[str, str, int]] = []

    def browse(uri: str) -> None:
        page = Path(url2pathname(urlsplit(uri).path))
        opened.append((uri, page.read_text(), stat.S_IMODE(page.stat().st_mode)))

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(webbrowser, "open", browse)
    monkeypatch.setattr(Server, "serve_forever", interrupted)
    said: list[str] = []
    settings = Settings(UserFiles.of(None, folder / "mine"))
    run(settings, say=said.append)
    (link,) = re.findall(r"http://\S+", "".join(said))
    ((uri, text, mode),) = opened
    assert f"url={link}" in text
    assert link.partition("=")[2] not in uri
    assert mode == 0o600
    assert [path.name for path in (folder / "user" / "dipriv" / "studio").iterdir()] == ["lock"]
    with pytest.raises(InputError, match="port"):
        run(settings, port=running.server_port, say=said.append)
