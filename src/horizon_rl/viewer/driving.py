"""Driving from the browser: a script beside viser's client, and what it asks for.

viser's own keys nudge, and W A S D and the arrows move its camera. The script takes these,
a gamepad's sticks and fingers first, and asks for `drive?command=FORWARD,LEFT,TURN` or
`drive?do=ACTION`.
"""

import gzip
from collections.abc import Callable
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from math import isfinite
from urllib.parse import parse_qs

import numpy as np

from horizon_rl.support.errors import InputError, needs_extra
from horizon_rl.viewer.session import MAX_COMMAND

with needs_extra("viewer"):
    from websockets.datastructures import Headers
    from websockets.http11 import Response

PATH = "/drive"
ACTIONS = ("push", "stop", "reset")
Ask = Callable[[np.ndarray | str], None]
"""Takes a command, [3], or the name of an action."""


def answer(path: str, ask: Ask) -> Response | None:
    """Do what a request asks for, and say so; None: it is none of the script's."""
    place, _, query = path.partition("?")
    if place != PATH:
        return None
    try:
        ask(parse_wish(query))
    except InputError as error:
        return _respond(HTTPStatus.BAD_REQUEST, f"{error}\n".encode())
    return _respond(HTTPStatus.NO_CONTENT, b"")


def parse_wish(query: str) -> np.ndarray | str:
    """Read what the script asks for: a command within its bounds, or an action."""
    asked = {key: values[-1] for key, values in parse_qs(query).items()}
    if asked.get("do") in ACTIONS:
        return asked["do"]
    try:
        command = [float(part) for part in asked.get("command", "").split(",")]
    except ValueError:
        command = []
    if len(command) != 3 or not all(map(isfinite, command)):
        raise InputError(
            f"'{query}'; accepted: command=FORWARD,LEFT,TURN or do={'|'.join(ACTIONS)}"
        )
    return np.clip(command, -MAX_COMMAND, MAX_COMMAND)


def add_script(response: Response) -> Response:
    """Put the script into viser's page, before all that is in it."""
    is_packed = response.headers.get("Content-Encoding") == "gzip"
    body = _with_script(bytes(response.body or b""), is_packed)
    headers = Headers(response.headers)
    del headers["Content-Length"]
    headers["Content-Length"] = str(len(body))
    return Response(response.status_code, response.reason_phrase, headers, body)


@cache  # Packing takes longer than all else.
def _with_script(page: bytes, is_packed: bool) -> bytes:
    script = files("horizon_rl.viewer").joinpath("drive.js").read_text("utf-8")
    plain = gzip.decompress(page) if is_packed else page
    plain = plain.replace(b"<head>", f"<head><script>{script}</script>".encode(), 1)
    return gzip.compress(plain) if is_packed else plain


def _respond(status: HTTPStatus, body: bytes) -> Response:
    headers = Headers({"Content-Length": str(len(body)), "Content-Type": "text/plain"})
    return Response(status, status.phrase, headers, body)
