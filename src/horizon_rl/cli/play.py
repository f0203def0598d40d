"""`horizon play`: a policy in the browser, in a window, or on film."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from rich.console import Console
from rich.progress import track

from horizon_rl.cli.common import (
    CatalogueFlag,
    check_file,
    read_catalogue,
    split_name,
)
from horizon_rl.policies.shipped import model_names
from horizon_rl.support.errors import InputError, needs_extra, require

with needs_extra("viewer"):
    from horizon_rl.policies.load import STAND, EvaluatedPolicy, load_policy
    from horizon_rl.viewer.film import film
    from horizon_rl.viewer.movie import (
        GIF_FPS,
        MovieCfg,
        check_movie,
        parse_size,
        write_movie,
        write_picture,
    )
    from horizon_rl.viewer.session import Session
    from horizon_rl.viewer.setup import Setup, free_setup, load_scenario

FREE_S, MONTAGE_S = 10.0, 6.0
WALK = (0.8, 0.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class PlayCmd:
    """Play with a policy in the browser, or film it: drive, push, change its physics."""

    policy: Annotated[
        str, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME=]POLICY")
    ] = "base"
    """A name of `horizon models`, a checkpoint or run, an .onnx file, FILE.py:NAME, or
    `stand`."""
    robot: str | None = None
    """Preset, intervention (go2+stilts) or MJCF file; without it, go2."""
    scenario: str | None = None
    """Scenario of a suite, SUITE:COLUMN[@SEVERITY][#NUMBER]: ood:all@0.5#17."""
    command: tuple[float, float, float] | None = None
    """Forward and left, m/s, and turn, rad/s, to begin with; without it 0.8 0 0, or what
    the scenario asks for."""
    video: Path | None = None
    """File to film into, .mp4 or .gif, in place of playing; needs no screen."""
    versus: str | None = None
    """Another policy, filmed beside the first under the same scenario."""
    montage: bool = False
    """Film and draw the paper's seven robots, to --video and --picture."""
    picture: Path | None = None
    """PNG file of the montage: every robot at several instants."""
    seconds: float | None = None
    """Length of a video; without it, the whole scenario, or 10 s."""
    size: str | None = None
    """Size of a video, 960x540."""
    fps: float | None = None
    """Frames per second of a video; without it 25, and 12.5 in a GIF."""
    native: bool = False
    """Open MuJoCo's own window; needs a screen."""
    host: str = "127.0.0.1"
    """Address to serve the page on; 0.0.0.0 lets others in, and anybody drive."""
    port: int = 8080
    """Port of the page; the next free one if it is taken."""
    catalogue: CatalogueFlag = None


def run(cmd: PlayCmd) -> None:
    _check(cmd)
    if cmd.montage:
        _make_montage(cmd)
        return
    catalogue = read_catalogue(cmd.catalogue)
    if cmd.scenario:
        setup = load_scenario(cmd.scenario, cmd.robot, catalogue)
    else:
        setup = free_setup(cmd.robot or "go2", catalogue)
    if cmd.video:
        _film(cmd, cmd.video, setup)
        return
    session = _start(cmd.policy, setup, cmd)
    session.auto_reset = True
    try:
        if cmd.native:
            from horizon_rl.viewer.native import HELP, play_native

            print(HELP)
            play_native(session)
        else:
            _serve(cmd, session)
    except KeyboardInterrupt:
        print("bye")


def _check(cmd: PlayCmd) -> None:
    """Refuse what cannot end well, or would be ignored silently."""
    films = cmd.video is not None or cmd.montage
    for flag in ("versus", "seconds", "size", "fps"):
        fits = films and not (flag == "versus" and cmd.montage)
        if getattr(cmd, flag) is not None and not fits:
            raise InputError(f"--{flag} goes with --video FILE")
    if cmd.picture and not cmd.montage:
        raise InputError("--picture goes with --montage")
    if cmd.native and films:
        raise InputError("--native opens a window: leave out --video and --montage")
    if cmd.native:
        from horizon_rl.viewer.native import check_display

        check_display()
    if cmd.montage and (cmd.scenario or cmd.robot or cmd.catalogue):
        raise InputError(
            "--montage has its own robots, at the paper's baseline: leave out "
            "--scenario, --robot, --catalogue"
        )
    if cmd.seconds is not None:
        require("--seconds", cmd.seconds, 0.02, 600.0)
    if cmd.command and cmd.scenario:
        raise InputError("a scenario has commands of its own: leave out --command")
    for value in cmd.command or ():
        require("--command", value, -5.0, 5.0)
    require("--port", cmd.port, 0, 65535)
    if cmd.video:
        check_file("--video", cmd.video)
        check_movie(cmd.video)
    if cmd.picture:
        check_file("--picture", cmd.picture, ".png")


def _load(text: str) -> EvaluatedPolicy:
    name, source = split_name(text)
    return load_policy(source, name or Path(source).name)


def _start(policy: str, setup: Setup, cmd: PlayCmd, exact: bool = False) -> Session:
    session = Session(_load(policy), setup, exact)
    if not setup.scenario:
        session.drive(np.array(cmd.command or WALK))
    return session


def _serve(cmd: PlayCmd, session: Session) -> None:
    with needs_extra("viewer"):
        from horizon_rl.viewer.page import Page
    from horizon_rl.viewer.panel import Panel

    source = split_name(cmd.policy)[1]
    page = Page(session, cmd.host, cmd.port)
    Panel(page, [*dict.fromkeys((source, *model_names(), STAND))], source)
    print(f"playing on http://{cmd.host}:{page.port}  (Ctrl-C ends it)", flush=True)
    page.run()


def _film(cmd: PlayCmd, path: Path, setup: Setup) -> None:
    policies = [policy for policy in (cmd.policy, cmd.versus) if policy]
    # In a scenario exactly what `horizon eval` has counted.
    exact = bool(setup.scenario)
    sessions = [_start(policy, setup, cmd, exact) for policy in policies]
    seconds = cmd.seconds or (setup.task.episode_s if exact else FREE_S)
    cfg = _movie_cfg(cmd, MovieCfg())
    _write(path, film(sessions, cfg, seconds), cfg, seconds)
    for session in sessions:
        readout = session.readout()
        fate = f"fell at {readout.fallen_s:.1f} s" if readout.fallen else "did not fall"
        if readout.falls and not readout.fallen:
            fate = "broke the simulation and started over"
        print(f"{session.policy.name}: {fate}, error {readout.error:.2f} m/s")


def _make_montage(cmd: PlayCmd) -> None:
    from horizon_rl.viewer import montage

    policy, command = _load(cmd.policy), cmd.command or WALK
    video, picture = cmd.video, cmd.picture
    if video is None and picture is None:
        video, picture = Path("montage.mp4"), Path("montage.png")
        check_movie(video)
    if picture:
        sessions = montage.start_parade(policy, command)
        write_picture(picture, montage.draw_parade(sessions))
        print(f"drawn in {picture}")
    if video:
        cfg, seconds = _movie_cfg(cmd, montage.MONTAGE), cmd.seconds or MONTAGE_S
        sessions = montage.start_parade(policy, command)
        _write(video, montage.film_parade(sessions, cfg, seconds), cfg, seconds)


def _movie_cfg(cmd: PlayCmd, usual: MovieCfg) -> MovieCfg:
    width, height = parse_size(cmd.size) if cmd.size else (usual.width, usual.height)
    is_gif = cmd.video is not None and cmd.video.suffix.lower() == ".gif"
    fps = cmd.fps or (GIF_FPS if is_gif else usual.fps)
    return MovieCfg(width=width, height=height, fps=fps)


def _write(
    path: Path, frames: Iterable[np.ndarray], cfg: MovieCfg, seconds: float
) -> None:
    console = Console(stderr=True)
    tracked = track(
        frames,
        description=path.name,
        total=cfg.num_frames(seconds),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    write_movie(path, tracked, cfg.fps)
    print(f"filmed in {path}: {seconds:g} s, {path.stat().st_size / 1e6:.1f} MB")
