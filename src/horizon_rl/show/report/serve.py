"""Serve a page that is in memory, read-only, to whoever may read it.

Answers are looked up by their exact path in a table, so there is no path that leads to a
file. What is not GET or HEAD is refused.
"""

import re
import socket
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from horizon_rl.show.report.live import Answers
from horizon_rl.show.report.page import content_policy
from horizon_rl.support.addresses import is_loopback, page_url
from horizon_rl.support.errors import InputError

HEADERS = {
    "Allow": "GET, HEAD",
    "Content-Security-Policy": f"{content_policy(is_live=True)}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


class PageServer(ThreadingHTTPServer):
    """A thread for each connection, which has one request."""

    request_queue_size = 256

    def __init__(self, host: str, port: int):
        """Listen; nothing is served yet."""
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.answers: Callable[[], Answers] = dict
        """Returns what is to be served at the moment."""
        self.is_local = is_loopback(host)
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            raise InputError(
                f"cannot listen on {host}, port {port}: {error.strerror}; name another "
                "with --host or --port"
            ) from error

    def server_bind(self) -> None:
        # Not as HTTPServer does: it asks the network for this machine's name.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.socket.getsockname()[:2]

    @property
    def url(self) -> str:
        return page_url(self.server_name, self.server_port)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep the terminal clean: clients come and go as they please."""


class _Handler(BaseHTTPRequestHandler):
    server: PageServer  # pyright: ignore[reportIncompatibleVariableOverride]
    timeout = 10.0
    # Else a line that is no request would be answered as in 1991, without a status.
    default_request_version = "HTTP/1.0"
    error_message_format = "%(code)d %(message)s\n"
    error_content_type = "text/plain; charset=utf-8"

    def do_GET(self) -> None:
        host = re.sub(r":\d+$", "", self.headers.get("Host", ""))
        # A page elsewhere may have its own name point here, to read what is local.
        if self.server.is_local and not is_loopback(host):
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return
        answer = self.server.answers().get(self.path.partition("?")[0])
        if answer is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_HEAD = do_GET

    def end_headers(self) -> None:
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def send_error(
        self, code: int, message: str | None = None, explain: str | None = None
    ) -> None:
        """Answer with a line of text that repeats nothing of the request."""
        is_method = code == HTTPStatus.NOT_IMPLEMENTED
        super().send_error(HTTPStatus.METHOD_NOT_ALLOWED if is_method else code)

    def version_string(self) -> str:
        return "horizon"

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the terminal for what its owner did."""
