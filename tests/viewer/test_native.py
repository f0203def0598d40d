"""MuJoCo's window, with a stand-in for the window itself: there is no screen here."""

import itertools
import sys
import time
from contextlib import contextmanager, nullcontext
from threading import Event, Thread
from types import SimpleNamespace

import numpy as np
import pytest

from horizon_rl.support.errors import InputError

mujoco = pytest.importorskip("mujoco")
pytest.importorskip("glfw")


def make_window(model, frames: int, keys, press) -> SimpleNamespace:
    scene = mujoco.MjvScene(model, maxgeom=500)
    window = SimpleNamespace(cam=mujoco.MjvCamera(), user_scn=scene, drawn=[])

    def is_running() -> bool:
        if len(window.drawn) == 3:
            for key in keys:
                press(key)
        return len(window.drawn) < frames

    window.is_running = is_running
    window.lock = nullcontext
    window.sync = lambda: window.drawn.append(scene.ngeom)
    return window


def test_window_shows_the_session_and_takes_keys(monkeypatch):
    from horizon_rl.policies.load import load_policy
    from horizon_rl.viewer.native import ENTER, LEFT, UP, play_native
    from horizon_rl.viewer.session import Pace, Session
    from horizon_rl.viewer.setup import free_setup

    windows, drawn = [], Event()
    drawing = Thread(target=lambda: time.sleep(0.3) or drawn.set())

    @contextmanager
    def launch(model, data, *, key_callback, **_):
        windows.append(make_window(model, 60, (UP, UP, LEFT, ENTER), key_callback))
        yield windows[0]
        drawing.start()

    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("glfw.init", lambda: True)
    monkeypatch.setattr("mujoco.viewer.launch_passive", launch)
    # Eight milliseconds a frame, however busy the machine: the arrow outlasts them.
    ticks = itertools.count(step=0.008)
    monkeypatch.setattr(
        "horizon_rl.viewer.native.Pace", lambda: Pace(lambda: next(ticks))
    )
    session = Session(load_policy("stand"), free_setup("go2"))
    play_native(session)
    np.testing.assert_allclose(session.command, (0.4, 0.0, 0.2))
    assert session.steps > 5 and session.last_push_step >= 0
    # The tiles of the floor, and then an arrow.
    assert windows[0].drawn[-1] == windows[0].drawn[0] + 1
    assert drawn.is_set(), "its thread was left behind"


@pytest.mark.skipif(sys.platform != "linux", reason="needs no display elsewhere")
def test_display_that_is_not_there_is_refused(monkeypatch):
    from horizon_rl.viewer.native import check_display

    monkeypatch.setenv("DISPLAY", ":8765")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    with pytest.raises(InputError, match="there is no display here"):
        check_display()
