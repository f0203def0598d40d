"""HORIZON: recoverability-governed curricula for legged robots.

    import horizon_rl as hz

    policy, env = hz.load("core"), hz.make_env("go2", num_envs=16)

Nothing is imported before it is used: `import horizon_rl` needs no torch.
"""

from typing import TYPE_CHECKING

from horizon_rl.api.registration import register_env
from horizon_rl.support.lazy import lazy_names

__version__ = "0.1.0"

if TYPE_CHECKING:
    from horizon_rl.api.environment import NumpyEnv as NumpyEnv
    from horizon_rl.api.environment import make_env as make_env
    from horizon_rl.api.policy import NumpyPolicy as NumpyPolicy
    from horizon_rl.api.policy import load as load
    from horizon_rl.api.scoring import EvaluationResult as EvaluationResult
    from horizon_rl.api.scoring import evaluate as evaluate
    from horizon_rl.api.training_run import Training as Training
    from horizon_rl.api.training_run import train as train
    from horizon_rl.policies.shipped import model_names as model_names
    from horizon_rl.task import TaskCfg as TaskCfg
    from horizon_rl.training.config import TrainCfg as TrainCfg
    from horizon_rl.training.presets import preset_cfg as preset_cfg

__getattr__, __dir__ = lazy_names(__name__)
register_env()
