"""The page takes orders from the browser that was given its address, and no other."""

import http.client
import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("mujoco")
pytest.importorskip("viser", reason="needs the extra viewer")

import msgspec
import viser
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from horizon_rl.policies.load import load_policy
from horizon_rl.viewer.guard import check_request
from horizon_rl.viewer.page import Page
from horizon_rl.viewer.panel import Panel
from horizon_rl.viewer.session import Session
from horizon_rl.viewer.setup import free_setup
from waiting import PATIENCE_S, wait_for

PROTOCOL = Subprotocol(f"viser-v{viser.__version__}")
CAMERA = msgspec.msgpack.encode(
    {
        "type": "ViewerCameraMessage",
        "wxyz": (1.0, 0.0, 0.0, 0.0),
        "position": (1.0, 1.0, 1.0),
        "look_at": (0.0, 0.0, 0.0),
        "up_direction": (0.0, 0.0, 1.0),
        **{"fov": 1.0, "near": 0.1, "far": 9.0, "image_height": 9, "image_width": 9},
    }
)
"""Until viser has handled one, it changes a control and tells nobody."""


@contextmanager
def play() -> Iterator[SimpleNamespace]:
    """Serve a page for as long as it is needed."""
    session = Session(load_policy("stand"), free_setup("go2"))
    page = Page(session, "127.0.0.1", 0)
    panel = Panel(page, ("stand", "base-mlp"), "stand")
    thread = Thread(target=page.run, daemon=True)
    thread.start()
    yield SimpleNamespace(session=session, page=page, panel=panel, thread=thread)
    page.stop()
    thread.join(PATIENCE_S)


@pytest.fixture(scope="module")
def played() -> Iterator[SimpleNamespace]:
    """Return a page that no test changes."""
    with play() as served:
        yield served


@pytest.fixture
def stranger(tmp_path) -> Iterator[str]:
    """Serve an empty page of another origin; returns its address."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("<title>elsewhere</title>")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "site"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def control(page: Page, label: str) -> Any:
    found = page.server.gui._gui_input_handle_from_uuid.values()
    return next(handle for handle in found if getattr(handle, "label", None) == label)


def order(page: Page, label: str, **updates: Any) -> bytes:
    """Write the message by which a browser changes a control."""
    uuid = control(page, label)._impl.uuid
    message = {"type": "GuiUpdateMessage", "uuid": uuid, "updates": updates}
    return msgspec.msgpack.encode(message)


def address(page: Page) -> str:
    return page.url.replace("http://", "ws://")


def send(played: SimpleNamespace, *messages: bytes) -> None:
    """Say it as the page's own browser would, and wait until it was heard."""
    page, session = played.page, played.session
    origin = Origin(f"http://127.0.0.1:{page.port}")
    earlier = page.server.get_clients().keys()
    with connect(
        address(page),
        origin=origin,
        subprotocols=[PROTOCOL],
        open_timeout=PATIENCE_S,
        ping_interval=None,
        max_size=None,
    ) as socket:

        def make_sure(value: bool) -> None:
            """Switch something on or off: what was said before has arrived, too."""

            def is_heard() -> bool:
                socket.send(order(page, "stand up after a fall", value=value))
                return session.auto_reset is value

            wait_for(is_heard)

        socket.send(CAMERA)
        wait_for(lambda: page.server.get_clients().keys() - earlier)
        make_sure(True)
        for message in messages:
            socket.send(message)
        make_sure(False)


@pytest.fixture
def trap(tmp_path, monkeypatch) -> SimpleNamespace:
    """Return a policy whose file leaves a mark when it runs, and the mark."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trap.py").write_text(
        "from pathlib import Path\nPath('ran').touch()\ndef act(obs): return obs\n"
    )
    return SimpleNamespace(source="trap.py:act", mark=tmp_path / "ran")


ATTACK = """async ([url, protocol, camera, order]) => await new Promise((done) => {
  const socket = new WebSocket(url, [protocol]);
  socket.onopen = () => {
    socket.send(new Uint8Array(camera));
    setTimeout(() => socket.send(new Uint8Array(order)), 500);
    setTimeout(() => done("open"), 2000);
  };
  socket.onerror = () => done("refused");
})"""


@pytest.mark.parametrize("knows", ["the port", "the whole address"])
def test_page_of_another_origin_gets_no_connection(played, stranger, page, trap, knows):
    # In a real browser: any site that a user has open can try this on loopback ports.
    url = f"ws://127.0.0.1:{played.page.port}/"
    if knows == "the whole address":
        url = address(played.page)
    page.goto(stranger)
    message = list(order(played.page, "policy", value=trap.source))
    came = page.evaluate(ATTACK, [url, PROTOCOL, list(CAMERA), message])
    assert not trap.mark.exists(), "a stranger's page ran a file of this machine"
    assert came == "refused"


def test_policy_that_is_not_listed_is_not_loaded(trap):
    with play() as played:
        page, session = played.page, played.session
        send(played, order(page, "policy", value=trap.source))
        assert not trap.mark.exists()
        assert session.policy.name == "stand"
        wait_for(lambda: control(page, "policy").value == "stand")  # Shown again.
        send(played, order(page, "policy", value="base-mlp"))
        wait_for(lambda: session.policy.name == "base-mlp")
        # The list is ours, whatever a client makes of its own.
        listed = order(page, "policy", props={"options": (trap.source,)})
        send(played, listed, order(page, "policy", value=trap.source))
        assert not trap.mark.exists()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "nan", [1], None])
def test_value_that_is_no_number_changes_nothing(played, value):
    page, session = played.page, played.session
    labels = ("pace", "forward, m/s", "mass, kg", "strength, m/s", "level", "scale")
    send(played, *(order(page, label, value=value) for label in labels))
    played.page.do(played.panel._push)
    before = session.steps
    wait_for(lambda: session.steps > before + 5)
    assert played.thread.is_alive()
    assert page.pace.speed == 1.0
    assert session.body.payload_kg == 0.0
    assert all(map(math.isfinite, session.readout().command))
    assert all(map(math.isfinite, session.last_push))
    wait_for(lambda: control(page, "pace").value == 1.0)


def test_every_request_needs_the_token_and_a_name_of_this_machine(played):
    port, token = played.page.port, played.page.url.split("/")[3]
    own = f"127.0.0.1:{port}"
    for path, host, status in (
        (f"/{token}/", own, 200),
        (f"/{token}", f"localhost:{port}", 200),
        ("/", own, 403),
        (f"/{token[:-1]}/", own, 403),
        # A name of elsewhere that was made to point here.
        (f"/{token}/", f"rebound.example:{port}", 421),
    ):
        asked = http.client.HTTPConnection("127.0.0.1", port)
        asked.request("GET", path, headers={"Host": host})
        assert asked.getresponse().status == status, (path, host)
        asked.close()
    for origin in (None, "null", "http://rebound.example", f"https://{own}"):
        with pytest.raises(InvalidStatus, match="403"):
            named = Origin(origin) if origin else None
            connect(
                address(played.page),
                origin=named,
                subprotocols=[PROTOCOL],
                open_timeout=PATIENCE_S,
            )


@pytest.mark.parametrize(
    "origin, status",
    [(None, 200), ("own", 200), ("http://evil.com", 403), ("null", 403)],
)
def test_request_of_another_site_is_refused_even_with_the_token(played, origin, status):
    own = f"127.0.0.1:{played.page.port}"
    named = f"http://{own}" if origin == "own" else origin
    asked = http.client.HTTPConnection("127.0.0.1", played.page.port)
    path = f"/{played.page.url.split('/')[3]}/"
    asked.request("GET", path, headers={"Origin": named} if named else {})
    assert asked.getresponse().status == status
    asked.close()
    headers = {"Host": own} | ({"Origin": named} if named else {})
    found = check_request("/t/drive?do=reset", headers, "t", "127.0.0.1")
    assert (found is None) is (status == 200)


@pytest.mark.parametrize(
    "path, site, mode, allowed",
    [
        ("/t/drive?do=reset", None, None, True),
        ("/t/drive?do=reset", "same-origin", "cors", True),
        ("/t/drive?do=reset", "none", "navigate", True),
        # An image of another site, or its fetch(..., {mode: "no-cors"}): no Origin.
        ("/t/drive?do=reset", "cross-site", "no-cors", False),
        ("/t/drive?do=reset", "same-site", "no-cors", False),
        ("/t/drive?do=reset", "cross-site", "navigate", False),
        ("/t/", "cross-site", "no-cors", False),
        # The address in a terminal or chat that is itself a page.
        ("/t/", "cross-site", "navigate", True),
    ],
)
def test_request_without_an_origin_is_known_by_its_site(path, site, mode, allowed):
    headers = {"Host": "127.0.0.1:1", "Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}
    sent = {name: value for name, value in headers.items() if value}
    assert (check_request(path, sent, "t", "127.0.0.1") is None) is allowed


@pytest.mark.parametrize(
    "served, asked, allowed",
    [
        ("127.0.0.1", "127.0.0.1:1", True),
        ("127.0.0.1", "[::1]:1", True),
        ("127.0.0.1", "192.0.2.1:1", False),
        ("0.0.0.0", "192.0.2.1:1", True),
        ("0.0.0.0", "rebound.example:1", False),
        ("lab.example", "lab.example:1", True),
        ("lab.example", "", False),
    ],
)
def test_host_is_one_that_the_page_is_served_on(served, asked, allowed):
    assert (check_request("/t", {"Host": asked}, "t", served) is None) is allowed
