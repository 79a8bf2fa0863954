"""Who may ask: requests of this studio's own page, with the token of this run.

A page of another site can make a browser send requests to 127.0.0.1. It cannot set the header with the token, which is
in no cookie and in no URL that is sent; its requests have another Origin; and a name that it made point to 127.0.0.1
(DNS rebinding) is another Host. Any one of these is enough to refuse.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

ADDRESS = "127.0.0.1"
SAFE = ("GET",)
CHANGING = ("POST", "PUT")


class RefusedError(Exception):
    """A request that is not answered."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(status, text)
        self.status, self.text = status, text


@dataclass(frozen=True)
class Guard:
    """The checks of a studio at this port."""

    port: int
    token: str

    @classmethod
    def at(cls, port: int) -> Guard:
        """With a new token of 256 bits."""
        return cls(port, secrets.token_urlsafe(32))

    @property
    def host(self) -> str:
        """The only Host that is answered."""
        return f"{ADDRESS}:{self.port}"

    @property
    def origin(self) -> str:
        """The only Origin that is answered."""
        return f"http://{self.host}"

    def check_host(self, headers: Callable[[str], list[str]]) -> None:
        """Refuse names that lead here but are not ours, and bodies of unstated length."""
        if headers("Host") != [self.host]:
            raise RefusedError(HTTPStatus.MISDIRECTED_REQUEST, "This is not the address of the studio.")
        if headers("Transfer-Encoding"):
            raise RefusedError(HTTPStatus.NOT_IMPLEMENTED, "Send a body with its length.")

    def check_site(self, method: str, headers: Callable[[str], list[str]]) -> None:
        """Refuse requests that pages of other origins caused."""
        origins = headers("Origin")
        if any(origin != self.origin for origin in origins) or (method in CHANGING and not origins):
            raise RefusedError(HTTPStatus.FORBIDDEN, "This request comes from another page.")
        if any(site != "same-origin" for site in headers("Sec-Fetch-Site")):
            raise RefusedError(HTTPStatus.FORBIDDEN, "This request comes from another page.")

    def check_token(self, headers: Callable[[str], list[str]]) -> None:
        """Refuse whoever does not have the link that the terminal shows."""
        given = (headers("Authorization") or [""])[0].encode("utf-8", "replace")
        if not secrets.compare_digest(given, f"Bearer {self.token}".encode()):
            raise RefusedError(HTTPStatus.UNAUTHORIZED, "Open the link that the terminal shows.")
