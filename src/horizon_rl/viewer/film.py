"""Film sessions: one policy, or several side by side under the same scenario."""

from collections.abc import Iterator, Sequence

import numpy as np

from horizon_rl.physics import CONTROL_DT, cores_for_physics
from horizon_rl.viewer.captions import (
    GREY,
    RED,
    Line,
    describe_values,
    fit_items,
    write_lines,
)
from horizon_rl.viewer.movie import MovieCfg
from horizon_rl.viewer.session import Readout, Session
from horizon_rl.viewer.studio import Actor, Studio, View

FOLLOW = 0.15
"""Share of the way to the robot that the camera goes in a frame of 1/25 s."""
DISTANCE_LEGS = 4.2
"""Camera to robot, in lengths of its leg."""


def film_sessions(
    sessions: Sequence[Session], cfg: MovieCfg, seconds: float
) -> Iterator[np.ndarray]:
    """Play sessions side by side and yield frames; all see the same time."""
    panel = cfg.width // len(sessions)
    # The last one takes the pixel that does not divide.
    widths = [panel] * (len(sessions) - 1) + [cfg.width - panel * (len(sessions) - 1)]
    cameras = [Camera(session, panel / cfg.height) for session in sessions]
    studios = [
        Studio(session.robot, width, cfg.height)
        for session, width in zip(sessions, widths, strict=True)
    ]
    try:
        done = 0
        for frame in range(cfg.num_frames(seconds)):
            wanted = round(frame / cfg.fps / CONTROL_DT)
            for session in sessions:
                advance(session, wanted - done)
            done = wanted
            shots = [
                _caption(studio.draw([make_actor(s)], camera.follow(cfg.fps)), s)
                for s, studio, camera in zip(sessions, studios, cameras, strict=True)
            ]
            for shot in shots[1:]:
                shot[:, :2] = GREY
            yield np.concatenate(shots, axis=1)
    finally:
        for studio in studios:
            studio.close()


def advance(session: Session, steps: int) -> None:
    """Play on for so many control steps."""
    with cores_for_physics(session.env.backend):
        for _ in range(steps):
            session.step()


class Camera:
    """Looks at a robot from the side, and follows it smoothly."""

    def __init__(self, session: Session, aspect: float, height_m: float | None = None):
        """Start at the robot.

        Args:
            session: Whom to follow.
            aspect: Width of the picture over its height.
            height_m: What it shows from bottom to top; None: in perspective.
        """
        self._session, self._height_m = session, height_m
        # A narrow picture shows as much as a wide one, from further away.
        self._distance_legs = DISTANCE_LEGS * max(1.0, 1.25 / aspect)
        self._place = session.env.backend.state.root_position[0, :2].numpy().copy()

    def follow(self, fps: float) -> View:
        """Move on by one frame, and say where from to look."""
        robot = self._session.robot
        there = self._session.env.backend.state.root_position[0, :2].numpy()
        self._place += (1.0 - (1.0 - FOLLOW) ** (25.0 / fps)) * (there - self._place)
        ground_m = float(robot.ground.height_at(self._place))
        return View(
            lookat_m=(*self._place.tolist(), ground_m + 0.7 * robot.standing_height_m),
            distance_m=self._distance_legs * robot.leg_length_m,
            height_m=self._height_m,
        )


def make_actor(session: Session) -> Actor:
    """Return the session's robot as it is now, with a push that is not long past."""
    return Actor(robot=session.robot, state=session.state, push=session.shown_push)


def _caption(pixels: np.ndarray, session: Session) -> np.ndarray:
    height, width = pixels.shape[:2]
    size = max(10, round(min(height / 27, width / 40)))
    gap, large = size // 2 + 4, round(1.5 * size)
    readout = session.readout()
    setup = session.setup
    values = describe_values(setup.catalogue, session.values)
    physics = fit_items(values, size, width - 2 * gap)
    body = session.body.name
    lines = [
        Line(text=session.policy.name, at=(gap, gap), size=large, bold=True),
        Line(
            text=f"{readout.time_s:.1f} s",
            at=(width - gap, gap),
            size=large,
            anchor="ra",
        ),
        Line(
            text="  ".join(filter(None, (body, setup.scenario))),
            at=(gap, gap + 1.35 * large),
            size=size,
            color=GREY,
        ),
        Line(
            text=physics,
            at=(gap, gap + 1.35 * large + 1.4 * size),
            size=size,
            color=GREY,
        ),
        Line(text=say_motion(readout), at=(gap, height - gap), size=size, anchor="ld"),
    ]
    if readout.fallen:
        text = f"FALLEN at {readout.fallen_s:.1f} s"
        place = (width - gap, height - gap - 1.5 * size)
        lines.append(
            Line(text=text, at=place, size=large, color=RED, bold=True, anchor="rd")
        )
    return np.array(write_lines(pixels, lines))


def say_motion(readout: Readout) -> str:
    """Say what is asked for and what is done."""
    asked, done = (
        "{:+.1f} {:+.1f} m/s {:+.1f} rad/s".format(*np.round(values, 1) + 0.0)
        for values in (readout.command, readout.velocity)
    )
    return f"asked {asked}, does {done}"
