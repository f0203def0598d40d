"""`horizon play`: a policy in the browser, in a window, or on film."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from rich.markup import escape
from rich.progress import track

from horizon_rl.cli.common import (
    Terminal,
    check_file,
    read_catalogue,
    say,
    split_name,
    warn_of_pose,
)
from horizon_rl.cli.play_flags import PlayCmd
from horizon_rl.domains import shipped_catalogue
from horizon_rl.policies.shipped import STAND, model_names
from horizon_rl.runs.find import trained_runs
from horizon_rl.support.errors import InputError, needs_extra

with needs_extra("viewer"):
    from horizon_rl.policies.load import EvaluatedPolicy, load_policy
    from horizon_rl.viewer import film
    from horizon_rl.viewer.session import Session
    from horizon_rl.viewer.setup import FLAT_GROUND, free_setup, load_scenario

FREE_S, MONTAGE_S = 10.0, 6.0
WALK = (0.8, 0.0, 0.0)
MONTAGE_ALONE = (
    "--montage has its own robots, at the paper's baseline: leave out --scenario, "
    "--robot, --catalogue, --ground"
)


def run(cmd: PlayCmd) -> None:
    _check(cmd)
    if cmd.montage:
        _make_montage(cmd)
        return
    catalogue = read_catalogue(cmd.catalogue) if cmd.catalogue else None
    policies = [_load(policy) for policy in (cmd.policy, cmd.versus) if policy]
    if cmd.scenario:
        setup = load_scenario(cmd.scenario, cmd.robot, catalogue)
    else:
        # All that can be changed by hand, unless an oracle knows less.
        catalogue = catalogue or policies[0].catalogue or shipped_catalogue("extended")
        setup = free_setup(cmd.robot or "go2", catalogue, cmd.ground or FLAT_GROUND)
    # On film, in a scenario, exactly what `horizon eval` has counted.
    exact = bool(cmd.video and cmd.scenario)
    warn_of_pose(cmd.robot, [cmd.policy])
    sessions = [Session(policy, setup, exact) for policy in policies]
    for session in sessions:
        if not cmd.scenario:
            session.drive(np.array(cmd.command or WALK))
    if cmd.video:
        seconds = cmd.seconds or (setup.task.episode_s if exact else FREE_S)
        cfg = _movie_cfg(cmd, cmd.video, film.MovieCfg())
        _write(cmd.video, film.film_sessions(sessions, cfg, seconds), cfg, seconds)
        for session in sessions:
            end, error = session.describe_end(), session.readout().error
            say(f"{session.policy.name}: {end}, error {error:.2f} m/s")
        return
    for session in sessions:
        session.auto_reset = True
    try:
        _play(cmd, *sessions)
    except KeyboardInterrupt:
        print("bye")


def _check(cmd: PlayCmd) -> None:
    """Refuse what cannot end well, or would be ignored silently."""
    given = [getattr(cmd, flag) for flag in ("seconds", "size", "fps")]
    for_film = any(value is not None for value in given)
    films = cmd.video or cmd.montage
    own = cmd.scenario or cmd.robot or cmd.catalogue or cmd.ground
    for refused, why in (
        (for_film and not films, "--seconds, --size, --fps go with --video"),
        (cmd.versus and cmd.native, "--native shows one policy: leave out --versus"),
        (
            cmd.versus and cmd.ground and not cmd.video,
            "--versus on another --ground is for films: add --video, or leave out --ground",
        ),
        (
            cmd.versus and cmd.montage,
            "--versus films one scenario: leave out --montage",
        ),
        (cmd.picture and not cmd.montage, "--picture goes with --montage"),
        (cmd.native and films, "--native opens a window: leave out --video, --montage"),
        (cmd.command and cmd.scenario, "scenarios have commands: leave out --command"),
        (cmd.ground and cmd.scenario, "scenarios have a ground: leave out --ground"),
        (cmd.montage and own, MONTAGE_ALONE),
    ):
        if refused:
            raise InputError(why)
    if cmd.native:
        from horizon_rl.viewer.native import check_display

        check_display()
    if cmd.video or (cmd.montage and not cmd.picture):
        video = cmd.video or Path("montage.mp4")
        check_file("--video", video)
        film.check_movie(video)
    if cmd.picture:
        check_file("--picture", cmd.picture, ".png")


def _load(text: str) -> EvaluatedPolicy:
    name, source = split_name(text)
    return load_policy(source, name or Path(source).name)


def _play(cmd: PlayCmd, session: Session, rival: Session | None = None) -> None:
    if cmd.native:
        from horizon_rl.viewer.native import HELP, play_native

        say(HELP)
        play_native(session)
        return
    with needs_extra("viewer"):
        from horizon_rl.viewer.page import Page
        from horizon_rl.viewer.panel import Panel

    source = split_name(cmd.policy)[1]
    page = Page(session, cmd.host, cmd.port, rival)
    runs = map(str, trained_runs())
    Panel(page, [*dict.fromkeys((source, *model_names(), STAND, *runs))], source)
    keys = "W A S D drives, P pushes, Ctrl-C ends it"
    say(f"playing on {page.url}  ({keys})", flush=True)
    page.run()


def _make_montage(cmd: PlayCmd) -> None:
    from horizon_rl.viewer import montage

    policy, command = _load(cmd.policy), cmd.command or WALK
    both = not cmd.video and not cmd.picture
    if picture := cmd.picture or (Path("montage.png") if both else None):
        sessions = montage.start_parade(policy, command)
        film.write_picture(picture, montage.draw_parade(sessions))
        say(f"drawn in {picture}")
    if video := cmd.video or (Path("montage.mp4") if both else None):
        cfg, seconds = _movie_cfg(cmd, video, montage.MONTAGE), cmd.seconds or MONTAGE_S
        sessions = montage.start_parade(policy, command)
        _write(video, montage.film_parade(sessions, cfg, seconds), cfg, seconds)


def _movie_cfg(cmd: PlayCmd, video: Path, usual: film.MovieCfg) -> film.MovieCfg:
    width, height = (
        film.parse_size(cmd.size) if cmd.size else (usual.width, usual.height)
    )
    fps = cmd.fps or (film.GIF_FPS if video.suffix.lower() == ".gif" else usual.fps)
    return film.MovieCfg(width=width, height=height, fps=fps)


def _write(
    path: Path, frames: Iterable[np.ndarray], cfg: film.MovieCfg, seconds: float
) -> None:
    console, total = Terminal(stderr=True), cfg.num_frames(seconds)
    hidden = not console.is_terminal
    shown = track(frames, escape(path.name), total, console=console, disable=hidden)
    film.write_movie(path, shown, cfg.fps)
    say(f"filmed in {path}: {seconds:g} s, {path.stat().st_size / 1e6:.1f} MB")
