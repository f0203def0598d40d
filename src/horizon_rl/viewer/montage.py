"""The robots of the paper walking under one policy, to one scale."""

from collections.abc import Iterator, Sequence
from contextlib import closing

import numpy as np
from PIL import Image

from horizon_rl.physics import CONTROL_DT
from horizon_rl.policies.load import EvaluatedPolicy
from horizon_rl.robots import load_preset
from horizon_rl.viewer.film import GREY, INK, RED, MovieCfg, film_sessions, play, write
from horizon_rl.viewer.session import Session
from horizon_rl.viewer.setup import free_setup
from horizon_rl.viewer.studio import Studio, look_at

PAPER_ROBOTS = ("go2", "go1", "a1", "spot", "cyberdog1", "b1", "b2")
"""The seven robots that the paper evaluates on."""
GRID = COLUMNS, ROWS = 4, 2
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
        play(session, round(WARM_UP_S / CONTROL_DT))
    return sessions


def film_parade(
    sessions: Sequence[Session], cfg: MovieCfg, seconds: float
) -> Iterator[np.ndarray]:
    """Show each robot in a panel of its own; yields frames."""
    first, size = sessions[0], _letters(cfg.height // ROWS)
    for frame in film_sessions(sessions, cfg, seconds, GRID, _label, PANEL_HEIGHT_M):
        page, time_s = Image.fromarray(frame), first.steps * CONTROL_DT - WARM_UP_S
        # The last panel is free.
        x = cfg.width // COLUMNS * (COLUMNS - 1) + 20
        y = cfg.height // ROWS * (ROWS - 1) + 3.0 * size
        write(page, f"one policy: {first.policy.name}", (x, y), size, bold=True)
        write(page, f"asked for {_ask(first)}", (x, y + 1.8 * size), size)
        scale = f"{time_s:.1f} s, all to one scale"
        write(page, scale, (x, y + 3.6 * size), size)
        yield np.array(page)


def draw_parade(sessions: Sequence[Session]) -> np.ndarray:
    """Show each robot in a strip of its own at several instants: one picture."""
    walked = [_strobe(session) for session in sessions]
    length = max(s[-1][ROOT_X] - s[0][ROOT_X] for s in walked) + 2.0 * BORDER_M
    strips = [
        _draw_strip(session, states, LABEL_M + length)
        for session, states in zip(sessions, walked, strict=True)
    ]
    floor = tuple(strips[0][-1, -1].tolist())
    footer = Image.new("RGB", (strips[0].shape[1], 70), floor)
    footer.paste(INK, (8, 20, 8 + PIXELS_PER_M, 24))
    first = sessions[0]
    text = f"1 m    {first.policy.name}, asked for {_ask(first)}, every {PACE_S:g} s"
    write(footer, text, (8, 32), 17)
    return np.concatenate([*strips, np.array(footer)])


def _strobe(session: Session) -> list[np.ndarray]:
    """Walk on, and return the state at every instant."""
    states = []
    for number in range(NUM_INSTANTS):
        play(session, round(PACE_S / CONTROL_DT) if number else 0)
        state = session.state
        state[ROOT_Y] = 0.0  # Seen from the side, a drift would lift or sink it.
        states.append(state)
    return states


def _draw_strip(
    session: Session, states: Sequence[np.ndarray], length_m: float
) -> np.ndarray:
    height_m = 1.85 * session.robot.standing_height_m
    width, height = (round(m * PIXELS_PER_M) for m in (length_m, height_m))
    middle_m = states[0][ROOT_X] - BORDER_M - LABEL_M + length_m / 2.0
    ground_m = float(session.robot.ground.height_at(np.array((middle_m, 0.0))))
    place_m = middle_m, 0.0, ground_m + 0.4 * height_m
    camera = look_at(place_m, 4.0, azimuth_deg=90.0, elevation_deg=-6.0)
    with closing(Studio(session.robot, width, height, height_m)) as studio:
        image = Image.fromarray(studio.draw(states, camera, tiles=False))
    _label(image, session, 17)
    return np.array(image)


def _label(image: Image.Image, session: Session, size: int | None = None) -> None:
    """Write on a picture which robot it shows."""
    size, body = size or _letters(image.height), load_preset(session.body.robot)
    about, color = f"{body.total_mass_kg:.0f} kg", GREY
    if session.fallen:
        about, color = session.describe_end(), RED
    write(image, body.title.split(" (")[0], (8, 6), size, bold=True)
    write(image, about, (8, 6 + 1.3 * size), size, color)


def _letters(panel_height: int) -> int:
    """Return the size of letters in a panel, in pixels."""
    return max(9, round(panel_height / 18))


def _ask(session: Session) -> str:
    forward, left, turn = session.command
    parts = [f"{forward:g} m/s"]
    parts += [f"{left:g} m/s to the left"] if left else []
    parts += [f"{turn:g} rad/s"] if turn else []
    return ", ".join(parts)
