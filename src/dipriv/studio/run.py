"""The life of a studio: a private folder, a server, a link for the browser, and an end that leaves nothing behind."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Callable
from html import escape
from pathlib import Path

from dipriv._base.atomic_write import OWNER_ONLY, write_text
from dipriv.errors import InputError
from dipriv.studio.files import PrivateFolder
from dipriv.studio.server import Server
from dipriv.studio.tabs import Settings, Tabs


def run(settings: Settings, *, port: int = 0, browser: bool = True, say: Callable[[str], None] = print) -> None:
    """Serve until Ctrl-C."""
    with PrivateFolder.made() as folder:
        tabs = Tabs(settings, folder)
        try:
            server = Server(tabs, port)
        except OSError as error:
            raise InputError(
                f"port {port} cannot be used: {os.strerror(error.errno or 0)}.", "Choose another, or leave it out."
            ) from None
        link = f"{server.guard.origin}/#token={server.guard.token}"
        say(f"The studio for {settings.files.folder} is open, on this machine alone:\n\n  {link}\n")
        say("Whoever has this link can use the studio. End it with Ctrl-C; it then forgets the private tables.")
        if browser and _has_screen():
            _open(link, folder.path / "open.html")
        try:
            with server:
                server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            say("\nThe studio ends.")
        finally:
            for note in tabs.close():
                say(note)


def _has_screen() -> bool:
    """Whether a browser that is started here has a window, rather than taking the terminal."""
    return sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def _open(link: str, page: Path) -> None:
    """Open the link by a page that its owner alone can read: all users see the arguments of a browser's process."""
    text = f'<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={escape(link)}">\n'
    write_text(page, text, OWNER_ONLY)
    webbrowser.open(page.as_uri())
