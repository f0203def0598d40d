"""Driving by keys, gamepad and fingers, in a real browser."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("viser", reason="needs the extra viewer")

from browsing import COARSE
from horizon_rl.policies.load import load_policy
from horizon_rl.support.errors import InputError
from horizon_rl.viewer.driving import parse_wish
from horizon_rl.viewer.page import Page
from horizon_rl.viewer.panel import Panel
from horizon_rl.viewer.session import Session
from horizon_rl.viewer.setup import free_setup
from waiting import PATIENCE_S, wait_for

GAMEPAD = """
window.pad = {axes: [0, 0, 0, 0], buttons: Array.from({length: 17}, () => ({pressed: false}))};
navigator.getGamepads = () => [null, window.pad];
"""


@contextmanager
def serve(*policies: str) -> Iterator[SimpleNamespace]:
    setup = free_setup("go2")
    sessions = [Session(load_policy(policy), setup) for policy in policies]
    shown = Page(sessions[0], "127.0.0.1", 0, *sessions[1:])
    # Without a GPU a frame takes seconds, most of it for these.
    shown.server.scene.configure_default_lights(cast_shadow=False)
    shown.server.scene.configure_environment_map(None)
    Panel(shown, ("stand", "base-mlp"), "stand")
    thread = Thread(target=shown.run, daemon=True)
    thread.start()
    yield SimpleNamespace(session=sessions[0], sessions=sessions, page=shown)
    shown.stop()
    thread.join(PATIENCE_S)


@pytest.fixture
def served() -> Iterator[SimpleNamespace]:
    with serve("stand") as found:
        yield found


def is_asked(session: Session, *command: float):
    return lambda: np.allclose(session.command, command)


def open_page(page, served) -> None:
    page.set_viewport_size({"width": 800, "height": 600})
    page.goto(served.page.url)
    page.get_by_text("on its feet").first.wait_for()
    # It is heard once it has said where its camera is, which begins somewhere else.
    start = served.page.server.initial_camera.position
    wait_for(lambda: served.page.server.get_clients())
    wait_for(lambda: np.allclose(camera(served), start, atol=1e-3))


def camera(served) -> np.ndarray:
    (client,) = served.page.server.get_clients().values()
    return np.array(client.camera.position)


def test_held_keys_drive_and_leave_the_camera_alone(served, page):
    session = served.session
    open_page(page, served)
    page.mouse.click(300, 400)
    before = camera(served)
    for key, command in {
        "w": (0.8, 0.0, 0.0),
        "ArrowDown": (-0.8, 0.0, 0.0),
        "a": (0.0, 0.8, 0.0),
        "e": (0.0, 0.0, -1.0),
        "ArrowLeft": (0.0, 0.0, 1.0),
    }.items():
        page.keyboard.down(key)
        wait_for(is_asked(session, *command))
        page.keyboard.up(key)
        wait_for(is_asked(session, 0.0, 0.0, 0.0))
    page.keyboard.down("Shift")
    page.keyboard.down("w")
    page.keyboard.down("d")
    wait_for(is_asked(session, 1.5, -1.5, 0.0))
    page.evaluate("window.dispatchEvent(new Event('blur'))")
    wait_for(is_asked(session, 0.0, 0.0, 0.0))
    page.keyboard.up("Shift")
    np.testing.assert_allclose(camera(served), before, atol=1e-6)


# The page writes its readout again all the time: all is asked for at once.
LOOK = """() => {
    const css = (node, name) => getComputedStyle(node)[name];
    const state = [...document.querySelectorAll("span")].find(
        (node) => node.textContent === "on its feet");
    if (!state) return null;
    let panel = state;
    while (/, 0\\)$/.test(css(panel, "backgroundColor"))) panel = panel.parentElement;
    return [css(panel, "backgroundColor"), css(state, "color"),
            css(document.querySelector("canvas"), "filter")];
}"""


def test_page_is_dark_for_those_who_prefer_it(served, page):
    page.emulate_media(color_scheme="dark")
    open_page(page, served)
    dark = page.wait_for_function(LOOK).json_value()
    assert dark == ["rgb(36, 36, 36)", "rgb(74, 222, 128)", "brightness(0.7)"]
    # It follows a change, too.
    with page.expect_navigation():
        page.emulate_media(color_scheme="light")
    light = page.wait_for_function(LOOK).json_value()
    assert light == ["rgb(255, 255, 255)", "rgb(21, 128, 61)", "none"]


def test_typing_into_a_box_drives_nothing(served, page):
    open_page(page, served)
    box = page.locator("input").first
    box.focus()
    page.keyboard.press("w")
    page.keyboard.press("ArrowUp")
    page.wait_for_timeout(500)
    assert served.session.driven is None or abs(served.session.command[0]) < 0.5


def test_gamepad_drives_and_pushes(served, page):
    page.add_init_script(GAMEPAD)
    session = served.session
    open_page(page, served)
    page.evaluate("window.pad.axes = [0.1, -1, 0.5, 0]")
    wait_for(is_asked(session, 1.5, 0.0, -0.75))
    page.evaluate("window.pad.axes = [0, 0, 0, 0]")
    wait_for(is_asked(session, 0.0, 0.0, 0.0))
    page.evaluate("window.pad.buttons[0] = {pressed: true}")
    wait_for(lambda: session.last_push_step >= 0 or session.falls > 0)


def test_camera_comes_back(served, page):
    open_page(page, served)
    before = camera(served)

    def drag() -> bool:
        # The first may come before the scene listens.
        page.mouse.move(300, 300)
        page.mouse.down()
        page.mouse.move(450, 360, steps=6)
        page.mouse.up()
        page.wait_for_timeout(500)
        return np.abs(camera(served) - before).max() > 0.1

    wait_for(drag)

    def recentre() -> bool:
        # On a busy machine the drag may still be going on.
        page.get_by_text("Recentre the camera").click()
        page.wait_for_timeout(1000)
        return np.abs(camera(served) - before).max() < 0.02

    wait_for(recentre)


def test_phone_has_a_stick(served, browser):
    context = browser.new_context(
        viewport={"width": 390, "height": 780}, has_touch=True, is_mobile=True, **COARSE
    )
    context.set_default_timeout(1000.0 * PATIENCE_S)
    page = context.new_page()
    try:
        page.goto(served.page.url)
        stick = page.locator("#stick")
        stick.wait_for(state="visible")
        # The sheet covers the scene's lower part: one looks at what is below the robot.
        clients = served.page.server.get_clients
        wait_for(lambda: any(c.camera.look_at[2] < -0.1 for c in clients().values()))
        box = stick.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x, box["y"] - 40, steps=3)
        wait_for(is_asked(served.session, 1.5, 0.0, 0.0))
        page.mouse.up()
        wait_for(is_asked(served.session, 0.0, 0.0, 0.0))
    finally:
        context.close()


def test_rivals_are_driven_pushed_and_changed_alike(page):
    with serve("stand", "base-mlp") as served:
        first, rival = served.sessions
        open_page(page, served)
        page.mouse.click(300, 400)
        page.keyboard.down("w")
        wait_for(is_asked(first, 0.8, 0.0, 0.0))
        wait_for(is_asked(rival, 0.8, 0.0, 0.0))
        wait_for(lambda: rival.place[0] > first.place[0] + 0.1)
        page.keyboard.up("w")
        page.keyboard.press("p")
        wait_for(lambda: all(s.last_push_step >= 0 or s.falls for s in (first, rival)))
        page.get_by_role("tab", name="Body").click()
        page.get_by_text("front-knees-locked", exact=True).click()
        wait_for(lambda: rival.body.name == "go2+front-knees-locked")
        assert first.body == rival.body
        names = page.locator("b", has_text="base-mlp")
        names.wait_for()


def test_desk_has_no_stick(served, page):
    open_page(page, served)
    assert not page.locator("#stick").is_visible()


@pytest.mark.parametrize(
    "query", ["", "command=1,2", "command=1,2,nan", "command=a,b,c", "do=explode"]
)
def test_other_wishes_are_refused(query):
    with pytest.raises(InputError, match="accepted: command=FORWARD,LEFT,TURN"):
        parse_wish(query)


def test_command_stays_within_its_bounds():
    np.testing.assert_array_equal(parse_wish("command=9,-9,0.5"), (1.5, -1.5, 0.5))
    assert parse_wish("do=push") == "push"
