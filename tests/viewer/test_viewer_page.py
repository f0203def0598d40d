"""The page in a real browser."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("viser", reason="needs the extra viewer")

from browsing import listen_for_errors
from horizon_rl.cli import main
from horizon_rl.domains import shipped_catalogue
from horizon_rl.policies.load import load_policy
from horizon_rl.support.errors import InputError
from horizon_rl.viewer.page import Page, relief
from horizon_rl.viewer.panel import Panel
from horizon_rl.viewer.session import Session
from horizon_rl.viewer.setup import free_setup, load_scenario, named_grounds
from waiting import PATIENCE_S, wait_for

POLICIES = ("base-mlp", "core-mlp", "stand")


def serve(source: str, setup) -> SimpleNamespace:
    session = Session(load_policy(source), setup)
    shown = Page(session, "127.0.0.1", 0)
    # Without a GPU a frame takes seconds, most of it for these.
    shown.server.scene.configure_default_lights(cast_shadow=False)
    shown.server.scene.configure_environment_map(None)
    panel = Panel(shown, POLICIES, source)
    thread = Thread(target=shown.run, daemon=True)
    thread.start()
    return SimpleNamespace(
        session=session, page=shown, panel=panel, thread=thread, url=shown.url
    )


@pytest.fixture
def walking() -> Iterator[SimpleNamespace]:
    served = serve("base-mlp", free_setup("go2"))
    served.session.drive(np.array((0.8, 0.0, 0.0)))
    yield served
    served.page.stop()
    served.thread.join(PATIENCE_S)
    assert not served.thread.is_alive()


def open_viewer(page, url: str) -> list[str]:
    errors = listen_for_errors(page)
    page.set_viewport_size({"width": 800, "height": 600})
    page.goto(url)
    page.get_by_text("on its feet").wait_for()
    return errors


def type_into(page, label: str, value: str, arrived: Callable[[], bool]) -> None:
    """Type a number into the box beside the visible slider of that label.

    Again, as a user would, where it does not arrive: a browser that is short of time may
    draw the box's former value over what is typed.
    """
    row = page.get_by_text(label, exact=True).locator("visible=true").first
    box = row.locator("xpath=ancestor::div[.//input][1]//input").last
    end = time.monotonic() + PATIENCE_S
    while not arrived():
        assert time.monotonic() < end, f"{value} did not arrive"
        box.fill(value)
        box.press("Enter")
        box.blur()
        with suppress(AssertionError):
            wait_for(arrived, seconds=5.0)


def test_robot_moves_and_answers_to_the_page(walking, page):
    session = walking.session
    errors = open_viewer(page, walking.url)
    view = {"x": 20.0, "y": 20.0, "width": 300.0, "height": 400.0}
    before, place = page.screenshot(clip=view), session.place[0].item()
    wait_for(lambda: session.place[0].item() > place + 0.2)
    wait_for(lambda: page.screenshot(clip=view) != before)

    # A slider changes the physics: a heavier robot stands lower.
    page.get_by_text("Stop (space)").click()
    wait_for(lambda: not session.command.any())
    stopped = session.steps
    wait_for(lambda: session.steps > stopped + 50)
    light = session.readout()
    page.get_by_role("tab", name="Physics").click()
    page.get_by_text("mass", exact=True).locator("visible=true").last.click()
    type_into(page, "scale", "99", lambda: session.values["mass.scale"] == 5.0)
    type_into(page, "scale", "1.8", lambda: session.values["mass.scale"] == 1.8)
    page.get_by_text("27.4 kg").wait_for()
    assert session.readout().mass_kg == pytest.approx(1.8 * light.mass_kg)
    page.get_by_text("outside").first.wait_for()
    wait_for(lambda: session.readout().height_m < light.height_m - 0.01)

    # A knee is locked in place, and the page shows the new body.
    page.get_by_role("tab", name="Body").click()
    page.get_by_text("front-knees-locked", exact=True).click()
    wait_for(lambda: session.body.name == "go2+front-knees-locked")

    # A push pushes. The robot may lie on the ground by now: so ask for the push itself.
    push, pushed = session.push, []
    session.push = lambda velocity: (pushed.append(velocity), push(velocity))
    page.get_by_role("tab", name="Drive").click()
    strength = walking.panel._strength
    type_into(page, "strength, m/s", "99", lambda: strength.value == 5.0)
    type_into(page, "strength, m/s", "1.5", lambda: strength.value == 1.5)
    page.get_by_text("Push (P)").click()
    wait_for(lambda: pushed)
    assert np.linalg.norm(pushed[0]) == pytest.approx(1.5)
    assert np.linalg.norm(session.planned_push) == pytest.approx(1.5)

    # Keys drive.
    page.mouse.click(300, 400)
    page.keyboard.press("u")
    wait_for(lambda: session.command[2] == pytest.approx(0.2))
    page.keyboard.press("Space")
    wait_for(lambda: not session.command.any())
    assert errors == []


def test_command_says_the_keys(monkeypatch, capsys):
    monkeypatch.setattr(Page, "run", lambda page: page.server.stop())
    assert main(["play", "stand", "--port", "0"]) == 0
    assert "(W A S D drives, P pushes, Ctrl-C ends it)" in capsys.readouterr().out


def test_keys_are_explained_above_the_fold(walking, page):
    open_viewer(page, walking.url)
    page.set_viewport_size({"width": 1280, "height": 800})
    box = page.get_by_text("the mouse moves the camera").bounding_box()
    assert box and box["y"] + box["height"] < 800


def test_impossible_change_is_said_and_changes_nothing():
    said, synced = [], []

    def refuse() -> None:
        raise InputError("no such physics")

    panel: Any = SimpleNamespace(
        _page=SimpleNamespace(tell=lambda *words: said.append(words), show=list),
        _sync=synced.append,
    )
    Panel._try(panel, refuse, dragged="a slider")
    assert synced == [None], "also the slider that asked for it goes back"
    assert said == [("not possible", "no such physics")]


@pytest.mark.parametrize("host", ["203.0.113.7", "no.such.host.invalid"])
def test_address_of_another_machine_is_refused(host):
    with pytest.raises(InputError, match=f"cannot serve on '{host}'"):
        Page(Session(load_policy("stand"), free_setup("go2")), host, 0)


def test_second_page_takes_another_port():
    session = Session(load_policy("stand"), load_scenario("ood:mass@0.5#1"))
    first = Page(session, "127.0.0.1", 0)
    second = Page(session, "127.0.0.1", first.port)
    try:
        assert second.port != first.port
    finally:
        first.server.stop()
        second.server.stop()


def test_the_page_shows_the_ground_and_lets_one_choose_it():
    setup = free_setup("go2", shipped_catalogue("extended"))
    shown = Page(Session(load_policy("stand"), setup), "127.0.0.1", 0)
    try:
        panel = Panel(shown, POLICIES, "stand")
        controls = [control for control, _, _ in panel._shown]
        (ground,) = [c for c in controls if "stairs-8" in getattr(c, "options", ())]
        assert ground.value == "flat" and shown._floor.visible and not shown._relief
        shown.session.set_values(named_grounds()["blocks-15"])
        shown.show()
        panel._sync()
        assert ground.value == "blocks-15"
        assert shown._relief and not shown._floor.visible
        patch: Any = shown.session.robot.ground
        corners, faces = relief(patch)
        assert corners[:, 2] == pytest.approx(patch.height_at(corners[:, :2]), abs=1e-9)
        normals = np.cross(
            corners[faces[:, 1]] - corners[faces[:, 0]],
            corners[faces[:, 2]] - corners[faces[:, 0]],
        )
        assert normals[:, 2].min() > 0.0, "they face up"
        shown.session.set_values(named_grounds()["flat"])
        shown.show()
        assert shown._floor.visible and not shown._relief
    finally:
        shown.server.stop()


def test_every_parameter_has_a_slider():
    session = Session(load_policy("stand"), free_setup("go2"))
    shown = Page(session, "127.0.0.1", 0)
    try:
        sliders = Panel(shown, POLICIES, "stand")._sliders
    finally:
        shown.server.stop()
    # The push has sliders of its own.
    names = {name for name, _ in sliders} | {"disturbance.push_velocity"}
    assert names == set(session.setup.catalogue.parameters)
    assert len(sliders) == 9 + 3 * 3 + 2
    (mass,) = [slider for name, slider in sliders if name == "mass.scale"]
    assert (mass.min, mass.max, mass.value) == (0.4, 5.0, 1.0)
