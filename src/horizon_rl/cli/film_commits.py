"""Films of a run's commits, all of one scenario: how the policy changes as it trains."""

from contextlib import closing
from pathlib import Path
from warnings import warn

from horizon_rl.runs.paths import film_file
from horizon_rl.support.durable import make_directory
from horizon_rl.support.errors import InputError, needs_extra

with needs_extra("viewer"):
    from horizon_rl.evaluation.success import COLUMN, SEVERITY, SUITE
    from horizon_rl.policies.load import load_policy
    from horizon_rl.robots import REFERENCE, load_robot
    from horizon_rl.robots.bodies import DRAWN
    from horizon_rl.training.run import Run
    from horizon_rl.viewer import film
    from horizon_rl.viewer.session import Session
    from horizon_rl.viewer.setup import load_scenario
    from horizon_rl.viewer.studio import Studio

SCENARIO = f"{SUITE}:{COLUMN}@{SEVERITY:g}#0"
SECONDS = 5.0
CFG = film.MovieCfg(width=480, height=270, fps=film.GIF_FPS)


def check_films() -> None:
    """Refuse films that cannot be drawn or encoded here, before a run begins."""
    film.check_movie(Path("x.gif"))
    with closing(Studio(load_robot(REFERENCE), 64, 64)):
        pass


def film_commit(run: Run, phase: int) -> Path | None:
    """Film the checkpoint of a phase that was just committed.

    A film that fails is said, and costs the run nothing. Nor does one that does not: the
    next phase seeds its own randomness.
    """
    robot = REFERENCE if run.cfg.robot in DRAWN else run.cfg.robot
    path = film_file(run.path, phase)
    try:
        setup = load_scenario(SCENARIO, robot, run.catalogue)
        policy = load_policy(str(run.checkpoint), f"phase {phase}")
        make_directory(path.parent)
        frames = film.film_sessions([Session(policy, setup)], CFG, SECONDS)
        film.write_movie(path, frames, CFG.fps)
    except (InputError, OSError) as error:
        warn(f"no film of phase {phase}: {error}", stacklevel=1)
        return None
    return path
