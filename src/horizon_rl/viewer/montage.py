"""The robots of the paper walking under one policy, to one scale."""

from collections.abc import Iterator, Sequence

import numpy as np

from horizon_rl.physics import CONTROL_DT
from horizon_rl.policies.load import EvaluatedPolicy
from horizon_rl.robots import load_preset
from horizon_rl.viewer.captions import GREY, INK, RED, Line, write_lines
from horizon_rl.viewer.film import Camera, advance, make_actor
from horizon_rl.viewer.movie import MovieCfg
from horizon_rl.viewer.session import Session
from horizon_rl.viewer.setup import free_setup
from horizon_rl.viewer.studio import Actor, Studio, View

PAPER_ROBOTS = ("go2", "go1", "a1", "spot", "cyberdog1", "b1", "b2")
"""The seven robots that the paper evaluates on."""
COLUMNS = 4
MONTAGE = MovieCfg(width=1280, height=600)
PANEL_HEIGHT_M = 1.5
"""What a panel of a video shows from bottom to top, whichever robot is in it."""
WARM_UP_S = 1.0
"""Robots are first shown when they walk."""
NUM_INSTANTS, PACE_S = 4, 1.5
"""A picture shows each robot so often, so far apart."""
PIXELS_PER_M = 220
LABEL_M, BORDER_M = 1.0, 0.7
ROOT_X, ROOT_Y = 1, 2
"""Places of the trunk's x and y in an integration state: time, then x, y, z."""


def start_parade(policy: EvaluatedPolicy, command: Sequence[float]) -> list[Session]:
    """Let the seven robots walk, each in a world of its own."""
    sessions = [Session(policy, free_setup(robot)) for robot in PAPER_ROBOTS]
    for session in sessions:
        session.drive(np.array(command))
        advance(session, round(WARM_UP_S / CONTROL_DT))
    return sessions


def film_parade(
    sessions: Sequence[Session], cfg: MovieCfg, seconds: float
) -> Iterator[np.ndarray]:
    """Show each robot in a panel of its own; yields frames."""
    rows = -(-(len(sessions) + 1) // COLUMNS)
    width, height = cfg.width // COLUMNS, cfg.height // rows
    size = max(9, round(height / 18))
    cameras = [
        Camera(session, width / height, height_m=PANEL_HEIGHT_M) for session in sessions
    ]
    with Studio(sessions[-1].robot, width, height) as studio:
        done = 0
        for frame in range(cfg.num_frames(seconds)):
            wanted = round(frame / cfg.fps / CONTROL_DT)
            page = np.full((cfg.height, cfg.width, 3), 252, dtype=np.uint8)
            for number, (session, camera) in enumerate(
                zip(sessions, cameras, strict=True)
            ):
                advance(session, wanted - done)
                pixels = studio.draw([make_actor(session)], camera.follow(cfg.fps))
                row, column = divmod(number, COLUMNS)
                x, y = column * width, row * height
                page[y : y + height, x : x + width] = write_lines(
                    pixels, _name(session, size)
                )
                page[y : y + 2, x : x + width] = page[y : y + height, x : x + 2] = 160
            done = wanted
            corner = ((COLUMNS - 1) * width, (rows - 1) * height)
            yield write_lines(page, _explain(sessions[0], corner, size))


def draw_parade(sessions: Sequence[Session]) -> np.ndarray:
    """Show each robot in a row of its own at several instants: one picture."""
    walked = [_strobe(session) for session in sessions]
    length = max(s[-1][ROOT_X] - s[0][ROOT_X] for s in walked) + 2.0 * BORDER_M
    rows = [
        _draw_row(session, states, LABEL_M + length)
        for session, states in zip(sessions, walked, strict=True)
    ]
    footer = np.full((70, rows[0].shape[1], 3), rows[0][-1, -1], dtype=np.uint8)
    footer[20:24, 8 : 8 + PIXELS_PER_M] = INK
    first = sessions[0]
    text = f"1 m    {first.policy.name}, asked for {_ask(first)}, every {PACE_S:g} s"
    footer = write_lines(footer, [Line(text=text, at=(8, 32), size=17)])
    return np.concatenate([*rows, footer])


def _strobe(session: Session) -> list[np.ndarray]:
    """Walk on, and return the state at every instant."""
    states = []
    for number in range(NUM_INSTANTS):
        if number:
            advance(session, round(PACE_S / CONTROL_DT))
        state = session.state
        state[ROOT_Y] = 0.0  # Seen from the side, a drift would lift or sink it.
        states.append(state)
    return states


def _draw_row(
    session: Session, states: Sequence[np.ndarray], length_m: float
) -> np.ndarray:
    robot = session.robot
    height_m = 1.6 * robot.standing_height_m
    width, height = (round(m * PIXELS_PER_M) for m in (length_m, height_m))
    actors = [
        Actor(robot=robot, state=state, fade=0.7 * (1.0 - (i + 1) / len(states)))
        for i, state in enumerate(states)
    ]
    middle_m = states[0][ROOT_X] - BORDER_M - LABEL_M + length_m / 2.0
    ground_m = float(robot.ground.height_at(np.array((middle_m, 0.0))))
    view = View(
        lookat_m=(middle_m, 0.0, ground_m + 0.4 * height_m),
        azimuth_deg=90.0,
        elevation_deg=-6.0,
        distance_m=4.0,
        height_m=height_m,
        tiles=False,
    )
    with Studio(robot, width, height) as studio:
        return write_lines(studio.draw(actors, view), _name(session, 17))


def _name(session: Session, size: int) -> list[Line]:
    body = load_preset(session.body.robot)
    about, color = f"{body.total_mass_kg:.0f} kg", GREY
    if session.fallen:
        about, color = f"fell after {session.fallen_step * CONTROL_DT:.1f} s", RED
    return [
        Line(text=body.title.split(" (")[0], at=(8, 6), size=size, bold=True),
        Line(text=about, at=(8, 6 + 1.3 * size), size=size, color=color),
    ]


def _explain(session: Session, corner: tuple[int, int], size: int) -> list[Line]:
    """Say in the last panel, which is free, what is seen."""
    texts = (
        f"one policy: {session.policy.name}",
        f"asked for {_ask(session)}",
        f"{session.steps * CONTROL_DT - WARM_UP_S:.1f} s, all to one scale",
    )
    x, y = corner[0] + 20, corner[1] + 3 * size
    return [
        Line(text=text, at=(x, y + 1.8 * i * size), size=size, bold=i == 0)
        for i, text in enumerate(texts)
    ]


def _ask(session: Session) -> str:
    forward, left, turn = session.command
    parts = [f"{forward:g} m/s"]
    parts += [f"{left:g} m/s to the left"] if left else []
    parts += [f"{turn:g} rad/s"] if turn else []
    return ", ".join(parts)
