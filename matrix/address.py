"""Where an API is and by which token it is asked, held to their form before anything is sent."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from matrix.forge import ForgeError, ForgeRule

__all__ = ["API", "address_of", "origin", "token_of"]

API: Final = "https://api.github.com"
_PORTS: Final = {"https": 443, "http": 80}


def address_of(api: str) -> str:
    """The address of an API, as something that can be asked.

    Raises:
        ForgeError: it is none.
    """
    if (address := api.strip().rstrip("/")) and origin(address):
        return address
    # One with a password in it is not repeated.
    message = f"{'this' if '@' in api else repr(api)} is not the address of an API."
    raise ForgeError(ForgeRule.ADDRESS, message, f"set GITHUB_API_URL to {API} or https://HOST/api/v3")


def origin(address: str) -> str:
    """Scheme, host and port in one text; empty where an address has none, or a password.

    >>> origin("https://HOST/api/v3"), origin("ftp://host"), origin("//host")
    ('https://host:443', '', '')
    """
    try:
        found = urlsplit(address)
        port = found.port
    except ValueError:
        return ""
    good = found.scheme in ("http", "https") and found.hostname and found.username is None
    return f"{found.scheme}://{found.hostname}:{port or _PORTS[found.scheme]}" if good else ""


def token_of(token: str | None) -> str | None:
    """A token as a header takes it, without the line break of a file that it was read from; None where there is none.

    Raises:
        ForgeError: it can be no token. The message does not show it.
    """
    token = (token or "").strip()
    if token.isascii() and token.isprintable() and " " not in token:
        return token or None
    message = "the token has characters that are in no token."
    raise ForgeError(ForgeRule.TOKEN, message, "set GITHUB_TOKEN to a valid token")
