"""Settings of a training run, and the presets that people start from."""

from dataclasses import dataclass, field, replace
from typing import Literal

from horizon_rl.errors import InputError, unknown
from horizon_rl.learning import CriticCfg, LearnerCfg, MlpCfg, PpoCfg, TransformerCfg
from horizon_rl.task import TaskCfg

Preset = Literal["smoke", "laptop", "paper"]
PolicyKind = Literal["transformer", "mlp"]


@dataclass(frozen=True, kw_only=True)
class TrainCfg:
    """One training run at fixed ranges."""

    robot: str = "go2"
    """Preset or intervention (go2, go2+stilts), `generated` for random bodies, or
    `mixed` for one half Go2 and the other half generated bodies and presets."""
    num_bodies: int = 64
    """Bodies to generate, where the robot is `generated` or `mixed`."""
    levels: str = ""
    """Fixed level of groups, as in all=0.25 or mass=0.5,com=0.2; else the baseline."""
    num_envs: int = 4096
    """Worlds; of several ranks (torchrun), each has so many."""
    rows_per_env: int = 4
    """Scenarios to draw per world and segment."""
    segment_iterations: int = 50
    """Iterations per segment. A run can be resumed at the end of a segment."""
    seed: int = 0
    """Seed of everything random."""
    steps: int = 0
    """Budget: environment steps, of all ranks together; 0 is no limit."""
    minutes: float = 0.0
    """Budget: minutes of training; 0 is no limit."""
    probe_episodes: int = 256
    """Fresh episodes, with mean actions, that measure success at the end."""
    task: TaskCfg = field(default_factory=TaskCfg)
    """The task."""
    learner: LearnerCfg = field(default_factory=LearnerCfg)
    """Networks and PPO."""

    def __post_init__(self):
        for name in ("num_bodies", "num_envs", "rows_per_env", "segment_iterations"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; at least 1")
        for name in ("seed", "steps", "minutes", "probe_episodes"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} is {getattr(self, name)}; at least 0")

    @property
    def steps_per_iteration(self) -> int:
        """Environment steps of an iteration, by one rank."""
        return self.num_envs * self.learner.ppo.num_steps


def preset_cfg(preset: str, policy: PolicyKind) -> TrainCfg:
    """Return a preset: `paper` is the paper's tables, the others deviate in size.

    No preset deviates from the rewards. docs/assumptions.md lists the differences.
    """
    paper = MlpCfg() if policy == "mlp" else TransformerCfg()
    match preset:
        case "paper":
            return TrainCfg(learner=LearnerCfg(actor=paper))
        case "smoke":
            # The paper's networks, but next to no data: does everything run?
            return TrainCfg(
                num_envs=16,
                segment_iterations=2,
                steps=4 * 16 * 24,
                probe_episodes=16,
                task=TaskCfg(episode_s=2.0),
                learner=LearnerCfg(actor=paper, ppo=PpoCfg(num_epochs=1)),
            )
        case "laptop":
            return _laptop(policy)
        case _:
            raise InputError(unknown("preset", preset, ("smoke", "laptop", "paper")))


def _laptop(policy: PolicyKind) -> TrainCfg:
    """Balance physics and learning on two cores: small nets, higher rate."""
    critic = CriticCfg(hidden_dims=(128, 128), encoder_dim=32, activation="elu")
    # With a sixteenth of the paper's worlds a minibatch's KL is mostly noise: steered
    # to 0.01 the rate sinks to its floor, and the robot stands for millions of steps.
    ppo = PpoCfg(learning_rate=1e-3, num_epochs=5, target_kl=0.02)
    # Less noise at the start: at 1.2 penalties outweigh staying alive, and the first
    # thing learnt is to fall.
    mlp = MlpCfg(hidden_dims=(128, 128), activation="elu", initial_std=0.5)
    cfg = TrainCfg(
        num_envs=256,
        segment_iterations=25,
        steps=8_000_000,
        learner=LearnerCfg(actor=mlp, critic=critic, ppo=ppo),
    )
    if policy == "mlp":
        return cfg
    transformer = TransformerCfg(
        embedding_dim=64, num_heads=4, feedforward_dim=128, window=15, initial_std=0.5
    )
    return replace(cfg, learner=replace(cfg.learner, actor=transformer))
