"""Training from Python: a run as an iterator of its events."""

from collections.abc import Iterator
from pathlib import Path

from horizon_rl.api.policy import NumpyPolicy, load
from horizon_rl.curriculum import Entry
from horizon_rl.domains import Catalogue, load_catalogue, paper_catalogue
from horizon_rl.support.errors import InputError, needs_extra
from horizon_rl.training.config import TrainCfg
from horizon_rl.training.presets import preset_cfg
from horizon_rl.training.protocols import Iteration

with needs_extra("train"):
    from horizon_rl.training.run import Run
    from horizon_rl.training.start import find_start, name_run


class Training:
    """A training run. Iterate over it to train: it yields every iteration of PPO as an
    `Iteration`, and every judged phase as an `Entry`, whose decision is on disk by then.

    To stop, leave the loop: the phase under way is not judged, and `resume` runs it
    again.
    """

    def __init__(self, run: Run):
        self.run = run

    @property
    def path(self) -> Path:
        """Directory of the run, for `horizon status`, `watch` and `report`."""
        return self.run.path

    @property
    def levels(self) -> dict[str, float]:
        """Mastered level by domain group."""
        return dict(self.run.curriculum.state.mastered)

    @property
    def ended(self) -> str | None:
        """Why the run is at its end, in words; None while it goes on."""
        return self.run.ended

    def policy(self) -> NumpyPolicy:
        """Load the policy of the last commit."""
        return load(self.run.checkpoint)

    def __repr__(self) -> str:
        return f"Training({str(self.path)!r}, {self.ended or 'not at its end'})"

    def __iter__(self) -> Iterator[Iteration | Entry]:
        try:
            yield from self.run.events()
        finally:
            self.run.close()


def train(
    cfg: TrainCfg | None = None,
    *,
    init: str | Path | None = None,
    path: str | Path | None = None,
    resume: str | Path | None = None,
    catalogue: Catalogue | str | Path | None = None,
    device: str = "auto",
    trust: bool = False,
) -> Training:
    """Start a run, or go on with one; it trains as it is iterated over.

    Args:
        cfg: Settings, as `preset_cfg("laptop")` returns them, which it is without.
        init: Whose weights to start from: a name of `horizon models`, a run or a
            checkpoint; or `scratch`. Without it, the shipped policy that has the
            settings' networks, if there is one.
        path: Directory of the run; without it, logs/train/<date and time>_<method>-<groups>.
        resume: Directory of a run to go on with, by its own settings.
        catalogue: Groups and their parameters: `extended`, a TOML file, or a value; the
            paper's seven without it.
        device: cpu, cuda, cuda:1, ... or auto.
        trust: With `resume`, run code that the run's catalogue names even if you have
            never run it. It has your rights: read it first.
    """
    if resume is not None:
        return Training(_resume(Path(resume), device, trust))
    if trust:
        raise InputError("trust goes with resume")
    cfg = cfg or preset_cfg("laptop")
    if not isinstance(cfg, TrainCfg):
        raise InputError(
            f"cfg is {cfg!r}; accepted: a TrainCfg, as `preset_cfg('gpu')` returns"
        )
    if catalogue is None:
        catalogue = paper_catalogue()
    elif not isinstance(catalogue, Catalogue):
        catalogue = load_catalogue(Path(catalogue))
    start, name = find_start(None if init is None else str(init), cfg.learner)
    where = Path(path) if path else name_run(cfg)
    return Training(Run.create(cfg, catalogue, where, device, init=start, name=name))


def _resume(path: Path, device: str, trust: bool) -> Run:
    try:
        return Run.resume(path, device=device, trust=trust)
    except InputError as error:
        # Worded for the command line.
        said = str(error).replace("add --trust", "pass trust=True")
        raise InputError(said) from None
