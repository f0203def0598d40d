"""Serve a page that is in memory, read-only, to whoever may read it.

Answers are looked up by their exact path in a table, so there is no path that leads to a
file. What is not GET or HEAD is refused. A connection has one request and
a few seconds for it: a slow client is cut off.
"""

import socket
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from socketserver import TCPServer
from typing import Any

from horizon_rl.show.report.live import Answer, Answers
from horizon_rl.show.report.page import content_policy
from horizon_rl.support.errors import InputError

REQUEST_S = 10.0
"""Time for a request to come and its answer to go."""
MAX_CONNECTIONS = 512
HEADERS = {
    "Content-Security-Policy": f"{content_policy(is_live=True)}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
    "Connection": "close",
}


class PageServer(ThreadingHTTPServer):
    """A thread for each connection, up to a number, each with a deadline."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, host: str, port: int):
        """Listen; nothing is served yet."""
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.answers: Callable[[], Answers] = dict
        """Returns what is to be served at the moment."""
        self.is_local = is_loopback(host)
        self._deadlines: dict[socket.socket, float] = {}
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise InputError(
                f"cannot listen on {host}, port {port}: {why}; name another with "
                "--host or --port"
            ) from error

    def server_bind(self) -> None:
        # Not as HTTPServer does: it asks the network for this machine's name.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.socket.getsockname()[:2]

    @property
    def url(self) -> str:
        host = self.server_name
        return f"http://{f'[{host}]' if ':' in host else host}:{self.server_port}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        if len(self._deadlines) >= MAX_CONNECTIONS:
            self.shutdown_request(request)
            return
        self._deadlines[request] = time.monotonic() + REQUEST_S
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._deadlines.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Cut off whoever is over time; called twice a second."""
        now = time.monotonic()
        # A copy: other threads end their connections meanwhile.
        for connection, deadline in self._deadlines.copy().items():
            if deadline < now:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # Gone already.

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep the terminal clean: clients come and go as they please."""


class _Handler(BaseHTTPRequestHandler):
    server: PageServer  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    # Else a line that is no request would be answered as in 1991, without a status.
    default_request_version = "HTTP/1.1"

    def handle(self) -> None:
        self.handle_one_request()

    def do_GET(self) -> None:
        if (refusal := self._refusal()) is not None:
            self.send_error(refusal)
            return
        answer = self.server.answers().get(self.path.partition("?")[0])
        if answer is None:
            self.send_error(HTTPStatus.NOT_FOUND)
        elif answer.etag in self.headers.get("If-None-Match", ""):
            self._send(HTTPStatus.NOT_MODIFIED, ETag=answer.etag)
        else:
            self._send(HTTPStatus.OK, answer, ETag=answer.etag)

    do_HEAD = do_GET

    def _refusal(self) -> HTTPStatus | None:
        """Say what is wrong with a request that could be parsed, if anything is."""
        hosts = self.headers.get_all("Host") or []
        has_body = (
            "Content-Length" in self.headers or "Transfer-Encoding" in self.headers
        )
        if len(hosts) != 1 or has_body:
            return HTTPStatus.BAD_REQUEST
        # A page elsewhere may have its own name point here, to read what is local.
        if self.server.is_local and not is_loopback(_without_port(hosts[0])):
            return HTTPStatus.MISDIRECTED_REQUEST
        return None

    def _send(
        self, status: HTTPStatus, answer: Answer | None = None, **headers: str
    ) -> None:
        if answer:
            headers["Content-Type"] = answer.kind
            headers["Content-Length"] = str(len(answer.body))
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            headers["Allow"] = "GET, HEAD"
        self.send_response(status)
        for name, value in {**HEADERS, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if answer and self.command != "HEAD":
            self.wfile.write(answer.body)

    def send_error(
        self, code: int, message: str | None = None, explain: str | None = None
    ) -> None:
        """Answer with a line of text."""
        if code == HTTPStatus.NOT_IMPLEMENTED:
            code = HTTPStatus.METHOD_NOT_ALLOWED
        status = HTTPStatus(code)
        text = f"{status.value} {status.phrase}\n".encode()
        self._send(status, Answer(text, "text/plain; charset=utf-8"))

    def version_string(self) -> str:
        return "horizon"

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the terminal for what its owner did."""


def is_loopback(host: str) -> bool:
    """Say whether a name or address means this machine and no other."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host
