"""A cluster is worth waiting for as long as its first node answers."""

import socket
import time

import pytest

pytest.importorskip("ray", reason="needs the extra grid")
from horizon_rl.grid.cluster import Head
from horizon_rl.support.errors import RunError


def test_a_head_may_be_silent_for_a_while_and_no_longer(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        head = Head(address)
        now[0] = 100.0
        head.check()  # It answers.
    for now[0] in (200.0, 206.0, 230.0):
        head.check()
    now[0] = 236.0
    with pytest.raises(RunError, match=f"{address} does not answer any more"):
        head.check()


def test_a_head_may_have_an_address_in_brackets(monkeypatch):
    monkeypatch.setattr(time, "monotonic", iter((0.0, 100.0)).__next__)
    asked = []
    monkeypatch.setattr(
        socket, "create_connection", lambda *args: asked.append(args) or socket.socket()
    )
    Head("[::1]:6379").check()
    assert asked[0][0] == ("::1", 6379)


def test_a_head_is_not_asked_all_the_time(monkeypatch):
    now, asked = [0.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        real = socket.create_connection

        def connect(*args):
            asked.append(now[0])
            return real(*args)

        monkeypatch.setattr(socket, "create_connection", connect)
        head = Head(f"127.0.0.1:{listening.getsockname()[1]}")
        for now[0] in (1.0, 4.0, 6.0, 7.0, 12.0):
            head.check()
    assert asked == [6.0, 12.0]
