"""What a run starts from, and where it is kept, unless one is told."""

from pathlib import Path

from horizon_rl.learning import LearnerCfg
from horizon_rl.policies.shipped import find_checkpoint, model_names
from horizon_rl.runs.find import RUNS, new_run_path, spell_out
from horizon_rl.support.errors import InputError
from horizon_rl.training.config import TrainCfg
from horizon_rl.training.presets import shipped_start

SCRATCH = "scratch"


def find_start(name: str | None, learner: LearnerCfg) -> tuple[Path | None, str]:
    """Return the checkpoint to start from, None for none, and its name.

    Args:
        name: A shipped policy, a run or a checkpoint; or `scratch`. None: the shipped
            policy that has the learner's networks, where there is one.
        learner: Who takes over its weights.
    """
    name = name or shipped_start(learner) or SCRATCH
    if name == SCRATCH:  # Whatever runs are called.
        return None, name
    try:
        name = spell_out(name, model_names())
        return find_checkpoint(name), name
    except InputError as error:
        raise InputError(f"{error}; or {SCRATCH}") from error


def name_run(cfg: TrainCfg) -> Path:
    """Return a directory for a run of these settings that does not exist yet."""
    return new_run_path(RUNS, f"{cfg.method}-{cfg.groups.replace(',', '+')}")
