"""MuJoCo's own window: for those who sit at the machine."""

import platform
import threading
import time
import warnings
from queue import SimpleQueue
from typing import Any

import mujoco
import numpy as np

from horizon_rl.physics import cores_for_physics
from horizon_rl.support.errors import InputError
from horizon_rl.viewer.body import read_state
from horizon_rl.viewer.session import Pace, Session
from horizon_rl.viewer.studio import add_arrow, add_floor

PUSH_M_S = 1.0
CLOSING_S = 5.0
"""How long a window may take to close, s."""
UP, DOWN, LEFT, RIGHT, PAGE_UP, PAGE_DOWN = 265, 264, 263, 262, 266, 267
ENTER, BACKSPACE, HOME = 257, 259, 268
"""GLFW's numbers of the keys that MuJoCo's window leaves free."""
STEERING = {UP: (0, 1), DOWN: (0, -1), PAGE_UP: (1, 1), PAGE_DOWN: (1, -1)}
STEERING |= {LEFT: (2, 1), RIGHT: (2, -1)}
"""Axis and sign of the command."""
HELP = (
    "keys: up, down forward and back; left, right turn; page up, page down sideways; "
    "home stops, enter pushes, backspace resets"
)


def play_native(session: Session) -> None:
    """Show a session until its window is closed; `check_display` comes first."""
    # Here, since it wants GLFW, which machines without a screen may lack.
    from mujoco.viewer import launch_passive

    others = {*threading.enumerate()}
    data, pressed = read_state(session.robot, session.state), SimpleQueue[int]()
    try:
        with (
            launch_passive(
                *(session.robot.model, data),
                key_callback=pressed.put,
                show_left_ui=False,
                show_right_ui=False,
            ) as window,
            cores_for_physics(session.env.backend),
        ):
            _show(session, window, data, pressed)
    finally:
        # It is drawn in a thread, which would crash if Python ended under it.
        for thread in {*threading.enumerate()} - others:
            thread.join(CLOSING_S)


# Any: MuJoCo's window has no public class.
def _show(
    session: Session, window: Any, data: mujoco.MjData, pressed: SimpleQueue[int]
) -> None:
    """Play until the window is closed; the camera follows the robot."""
    robot, pace = session.robot, Pace()
    window.cam.type = mujoco.mjtCamera.mjCAMERA_TRACKING
    window.cam.trackbodyid = robot.trunk_body_id
    window.cam.distance = 4.5 * robot.leg_length_m
    window.cam.azimuth, window.cam.elevation = 125.0, -20.0
    while window.is_running():
        while not pressed.empty():
            press(session, pressed.get())
        pace.advance(session)
        with window.lock():
            read_state(robot, session.state, data)
            scene, trunk = window.user_scn, data.xpos[robot.trunk_body_id]
            scene.ngeom = 0
            add_floor(scene, robot, trunk)
            if (push := session.shown_push) is not None:
                add_arrow(scene, trunk, push)
        window.sync()
        time.sleep(0.005)


def press(session: Session, key: int) -> None:
    """Do what a key stands for."""
    if key in STEERING:
        session.nudge(*STEERING[key])
    elif key == HOME:
        session.drive(np.zeros(3))
    elif key == ENTER:
        session.push(np.array((0.0, PUSH_M_S)))
    elif key == BACKSPACE:
        session.reset()


def check_display() -> None:
    """Refuse where no window can open: MuJoCo would wait for it for ever."""
    import glfw
    from mujoco import viewer

    if platform.system() == "Darwin":
        # What MuJoCo's own launcher of Python sets.
        opens = getattr(viewer, "_MJPYTHON", None) is not None
        hint = "on macOS it takes `mjpython -m horizon_rl play ... --native`"
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # It says in its way what is said below.
            opens, hint = bool(glfw.init()), "there is no display here"
        glfw.terminate()
    if not opens:
        raise InputError(
            f"--native opens a window, and {hint}: leave it out to play in the browser, "
            "or take --video FILE.mp4"
        )
