"""Who may talk to the page: a browser that was given its address, and no other site.

Any site that a user has open can connect to loopback ports, and websockets know no
same-origin rule. So every request must name this machine, come from the page itself and
have the token of its address, which viser's client repeats: the path's first part.
"""

import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from http import HTTPStatus
from secrets import compare_digest
from typing import Any

from horizon_rl.support.addresses import is_address, is_loopback
from horizon_rl.support.errors import RunError, needs_extra
from horizon_rl.viewer.driving import Ask, add_script, answer

with needs_extra("viewer"):
    from websockets.asyncio import server as websocket_server
    from websockets.asyncio.server import ServerConnection
    from websockets.http11 import Request, Response


def check_request(
    path: str, headers: Mapping[str, str], token: str, served_on: str
) -> HTTPStatus | None:
    """Return how a request is refused; None: it is answered.

    Args:
        path: What is asked for.
        headers: The request's.
        token: First part of every path.
        served_on: Name or address that the page is served on.
    """
    host = headers.get("Host", "")
    name = re.sub(r":\d+$", "", host).lower()
    if is_loopback(served_on):
        known = is_loopback(name)
    else:
        # A number cannot be made to point here, as a name of elsewhere can.
        own = {"localhost", served_on.lower(), socket.gethostname().lower()}
        known = is_address(name) or name.removesuffix(".local") in own
    if not known:
        return HTTPStatus.MISDIRECTED_REQUEST
    # Browsers name it with every websocket, and with what another site's script asks for.
    names_origin = "Upgrade" in headers or "Origin" in headers
    if names_origin and headers.get("Origin") != f"http://{host}":
        return HTTPStatus.FORBIDDEN
    # They say of everything else whose it is; only the page itself may be linked to.
    same_site = headers.get("Sec-Fetch-Site", "none") in ("same-origin", "none")
    is_link = headers.get("Sec-Fetch-Mode") == "navigate" and path == f"/{token}/"
    if not (names_origin or same_site or is_link):
        return HTTPStatus.FORBIDDEN
    given = path.partition("?")[0].split("/")[1]
    return None if compare_digest(given.encode(), token.encode()) else HTTPStatus(403)


@contextmanager
def guarded(token: str, served_on: str, ask: Ask) -> Iterator[None]:
    """Put the check before the server of websockets that is started inside.

    viser has no place for one of its own, so it is handed another `serve`, which also
    takes what the driving script asks for.
    """
    serve, started = websocket_server.serve, []

    def serve_guarded(*args: Any, process_request: Callable, **kwargs: Any) -> Any:
        def process(connection: ServerConnection, request: Request) -> Response | None:
            status = check_request(request.path, request.headers, token, served_on)
            if status:
                return connection.respond(status, f"{status} {status.phrase}\n")
            inner = "/" + "/".join(request.path.split("/")[2:])
            if response := answer(inner, ask):
                return response
            response = process_request(connection, replace(request, path=inner))
            is_page = inner.partition("?")[0] == "/"
            return add_script(response) if response and is_page else response

        started.append(served_on)
        return serve(*args, process_request=process, **kwargs)

    websocket_server.serve = serve_guarded  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield
    finally:
        websocket_server.serve = serve
    if not started:
        raise RunError("this version of viser cannot be guarded: take viser 1.1.1")
