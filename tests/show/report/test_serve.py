"""The server of the live page: it reads, and nothing else, whatever comes in."""

import http.client
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from horizon_rl.show.report import serve
from horizon_rl.show.report.live import make_answers
from horizon_rl.show.report.page import render_live
from horizon_rl.show.report.serve import PageServer
from horizon_rl.support.addresses import is_loopback
from horizon_rl.support.errors import InputError
from waiting import PATIENCE_S

SECRET = "the journal's neighbour"


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Serve a small page from a folder with a file that nobody may read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.txt").write_text(SECRET)
    (tmp_path / "section").symlink_to(tmp_path)
    section = render_live(None, problem="x" * 100_000)
    answers = make_answers("title", "subtitle", [section])
    with PageServer("127.0.0.1", 0) as started:
        started.answers = lambda: answers
        thread = threading.Thread(target=started.serve_forever, args=(0.05,))
        thread.start()
        yield started
        started.shutdown()
        thread.join()


def ask(server, path="/", method="GET", **headers):
    connection = http.client.HTTPConnection(
        "127.0.0.1", server.server_port, timeout=PATIENCE_S
    )
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def send(server, data: bytes, timeout: float = PATIENCE_S) -> bytes:
    """Send bytes as they are, and return all that comes back until the end."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout) as sock:
        sock.sendall(data)
        parts = []
        try:
            while part := sock.recv(65536):
                parts.append(part)
        except ConnectionResetError:
            pass  # Cut off with bytes unread.
        return b"".join(parts)


def test_page_state_and_sections_are_served(server):
    answer, body = ask(server)
    assert answer.status == 200 and body.startswith(b"<!doctype html>")
    _, state = ask(server, "/state.json?now")
    ((name, _),) = json.loads(state)["sections"]
    _, section = ask(server, f"/section/{name}")
    assert section.startswith(b"<section") and section[20:200] in body


def test_answers_carry_headers_that_forbid_all_but_the_page_itself(server):
    for path in ("/", "/nothing"):
        answer, _ = ask(server, path)
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'") and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy and "script-src 'sha256-" in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Server"] == "horizon"


def test_head_says_how_much_there_is_without_sending_it(server):
    answer, body = ask(server, method="HEAD")
    assert (answer.status, body) == (200, b"")
    assert int(answer.headers["Content-Length"]) == len(ask(server)[1])


@pytest.mark.parametrize(
    "path",
    [
        *("/secret.txt", "/../secret.txt", "/section/../secret.txt"),
        *("/%2e%2e/secret.txt", "/..%2fsecret.txt", "/section/secret.txt"),
        *("//etc/passwd", "/section//etc/passwd", "/./secret.txt", "/section/"),
        *(
            "/..\\secret.txt",
            "/section/live/",
            "/section/%00",
            "http://localhost/secret.txt",
        ),
    ],
)
def test_no_path_leads_to_a_file(server, path):
    answer, body = ask(server, path)
    assert (answer.status, body) == (404, b"404 Not Found\n")


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "MOVE"]
)
def test_every_method_that_could_change_something_is_refused(server, method, tmp_path):
    before = sorted(tmp_path.iterdir())
    answer, _ = ask(server, "/secret.txt", method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "secret.txt").read_text() == SECRET


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\xff\xfe\r\n\r\n", b"400"),  # TLS.
        (b"\x00\x00\x00\r\n\r\n", b"400"),
        (b"GET\r\n\r\n", b"400"),
        (b"GET /\r\n\r\n", b"421"),
        (b"GET / HTTP/9.9\r\n\r\n", b"505"),
        (b"GET / HTTP/x\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1 and more\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n\r\n", b"421"),  # No Host.
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", b"414"),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000 + b"\r\n\r\n", b"431"),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n", b"431"),
        (b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n", b"404"),
    ],
)
def test_what_is_no_request_gets_an_answer_and_the_server_goes_on(
    server, data, status, capfd
):
    answer = send(server, data)
    # Cut off before all was read, a client may miss the answer to too long a line.
    assert answer[:12] == b"HTTP/1.0 " + status or (not answer and len(data) > 60_000)
    assert ask(server)[0].status == 200
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "10.0.0.1", "a:b:c"]
)
def test_name_of_another_machine_is_refused_on_loopback(server, host):
    assert ask(server, Host=host)[0].status == 421


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:9000", "127.0.0.1", "[::1]:80"]
)
def test_own_names_are_answered_also_through_a_tunnel(server, host):
    assert ask(server, Host=host)[0].status == 200


def test_loopback_is_known_by_name_and_address():
    assert all(
        map(is_loopback, ("localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"))
    )
    assert not any(map(is_loopback, ("0.0.0.0", "::", "example.org", "10.0.0.1", "")))


def test_two_hundred_readers_at_once_all_get_the_page(server):
    together = threading.Barrier(200)

    def read(_):
        together.wait(PATIENCE_S)
        answer, body = ask(server)
        return answer.status, len(body)

    with ThreadPoolExecutor(200) as pool:
        found = set(pool.map(read, range(200)))
    assert found == {(200, len(ask(server)[1]))}


def test_silent_client_is_cut_off_while_others_are_served(server, monkeypatch):
    where = ("127.0.0.1", server.server_port)
    with socket.create_connection(where, PATIENCE_S) as sock:
        sock.sendall(b"G")
        assert ask(server, "/state.json")[0].status == 200
    # Not before: on a busy machine a reader would be too slow for it.
    monkeypatch.setattr(serve._Handler, "timeout", 0.1)
    with socket.create_connection(where, PATIENCE_S) as sock:
        sock.sendall(b"G")
        assert sock.recv(1) == b""


def test_client_that_does_not_read_holds_up_nobody(server):
    where = ("127.0.0.1", server.server_port)
    with socket.create_connection(where, PATIENCE_S) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 400)
        assert ask(server)[0].status == 200


def test_port_in_use_is_said(server):
    with pytest.raises(InputError, match="in use; name another with --host or --port"):
        PageServer("127.0.0.1", server.server_port)


def test_host_that_is_not_ours_is_said():
    with pytest.raises(InputError, match="cannot listen on no.such.host.invalid"):
        PageServer("no.such.host.invalid", 0)
