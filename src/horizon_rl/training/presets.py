"""The presets that people start from. No preset deviates from the rewards;
docs/assumptions.md lists the differences from the paper."""

from dataclasses import replace
from functools import cache
from typing import Literal

from horizon_rl.curriculum import EarlyCfg
from horizon_rl.learning import CriticCfg, LearnerCfg, MlpCfg, PpoCfg, TransformerCfg
from horizon_rl.support.errors import InputError, unknown
from horizon_rl.task import CommandCfg, PushCfg, TaskCfg
from horizon_rl.training.config import TrainCfg

Preset = Literal["smoke", "laptop", "gpu", "paper"]
PRESETS: tuple[Preset, ...] = ("smoke", "laptop", "gpu", "paper")
PolicyKind = Literal["transformer", "mlp", "oracle"]

SMALL_MLP = MlpCfg(hidden_dims=(128, 128), activation="elu", initial_std=0.5)
"""Little noise at the start: at the paper's 1.2 penalties outweigh staying alive on so
few worlds, and the first thing learnt is to fall."""
SMALL_TRANSFORMER = TransformerCfg(
    embedding_dim=64, num_heads=4, feedforward_dim=128, window=15, initial_std=0.5
)
SMALL_CRITIC = CriticCfg(hidden_dims=(128, 128), encoder_dim=32, activation="elu")
FAST_PPO = PpoCfg(
    learning_rate=1e-3,
    num_epochs=5,
    target_kl=0.02,
    final_entropy_coef=0.0,
    anneal_from=0.2,
)
"""With 256 worlds, a sixteenth of `paper`, a minibatch's KL is mostly noise: steered to
0.01 the rate sinks to its floor, and the robot stands for millions of steps."""


def preset_policy(preset: str) -> PolicyKind:
    """Return the kind of policy that a preset takes unless told."""
    return "mlp" if preset in ("smoke", "laptop") else "transformer"


@cache
def preset_cfg(preset: str, policy: PolicyKind | None = None) -> TrainCfg:
    """Return a preset: `paper` follows the paper's tables, the others deviate in size.

    An `oracle` is the preset's usual actor with the critic's view of the instance.
    """
    policy = policy or preset_policy(preset)
    if policy == "oracle":
        cfg = preset_cfg(preset, preset_policy(preset))
        critic = cfg.learner.critic
        actor = replace(
            cfg.learner.actor,
            privileged_groups=critic.privileged_groups,
            encoder_dim=critic.encoder_dim,
        )
        return replace(cfg, learner=replace(cfg.learner, actor=actor))
    match preset:
        case "paper":
            return TrainCfg(
                method="paper", robot="mixed", learner=_paper_learner(policy)
            )
        case "gpu":
            return _gpu(policy)
        case "laptop":
            return _laptop(policy)
        case "smoke":
            return _smoke(policy)
        case _:
            raise InputError(unknown("preset", preset, PRESETS))


def shipped_start(learner: LearnerCfg) -> str | None:
    """Name the shipped policy that has these networks, or None where none has them.

    An oracle starts from what it would be if it saw no instance, a symmetric actor from
    what it would be without the mirror.
    """
    starts = {"base-mlp": _small_learner("mlp"), "base": _paper_learner("transformer")}
    for name, shipped in starts.items():
        sees = shipped.actor.privileged_groups, shipped.actor.encoder_dim
        plain = replace(
            learner.actor,
            privileged_groups=sees[0],
            encoder_dim=sees[1],
            symmetric=False,
        )
        if (plain, learner.critic) == (shipped.actor, shipped.critic):
            return name
    return None


def _paper_learner(policy: PolicyKind) -> LearnerCfg:
    return LearnerCfg(actor=MlpCfg() if policy == "mlp" else TransformerCfg())


def _small_learner(policy: PolicyKind) -> LearnerCfg:
    actor = SMALL_MLP if policy == "mlp" else SMALL_TRANSFORMER
    return LearnerCfg(actor=actor, critic=SMALL_CRITIC, ppo=FAST_PPO)


def _in_a_mirror(learner: LearnerCfg) -> LearnerCfg:
    # Measured for MLPs alone: docs/studies/2026-11-18-noise.md.
    symmetric = isinstance(learner.actor, MlpCfg)
    return replace(learner, actor=replace(learner.actor, symmetric=symmetric))


def _gpu(policy: PolicyKind) -> TrainCfg:
    """The worlds and networks of `paper` with the shortest fair phases, on all bodies."""
    # As `base` was trained: the policy may move twice as far in an update.
    ppo = PpoCfg(target_kl=0.02, final_entropy_coef=0.0, anneal_from=0.2)
    paper = replace(_paper_learner(policy), ppo=ppo)
    learner = _small_learner("mlp") if policy == "mlp" else paper
    return TrainCfg(
        # Presets are held out, so that to walk them is a test.
        robot="generated",
        num_bodies=256,
        # Two and a half episodes: the shortest phase that measures both ends fairly.
        phase_iterations=54,
        # Phases are a ninth of those of `paper`: small probes keep their share small.
        probe_scenarios=96,
        anchor_scenarios=96,
        scout_scenarios=48,
        early=EarlyCfg(looks=(0.7,)),
        stagger=True,
        steps=200_000_000,
        task=_short_task(10.0),
        learner=_in_a_mirror(learner),
    )


def _laptop(policy: PolicyKind) -> TrainCfg:
    """Balance physics and learning on two cores: small nets, short episodes."""
    return TrainCfg(
        num_envs=256,
        phase_iterations=96,
        window=256,
        probe_scenarios=32,
        anchor_scenarios=16,
        scout_scenarios=16,
        early=EarlyCfg(looks=(0.35, 0.7), min_episodes=64),
        stagger=True,
        steps=6_200_000,
        task=_short_task(6.0),
        learner=_in_a_mirror(_small_learner(policy)),
    )


def _smoke(policy: PolicyKind) -> TrainCfg:
    """Next to no data, and episodes of a second: does everything run?"""
    learner = _small_learner(policy) if policy == "mlp" else _paper_learner(policy)
    return TrainCfg(
        num_envs=16,
        phase_iterations=6,
        window=32,
        probe_scenarios=16,
        anchor_scenarios=8,
        scout_scenarios=4,
        steps=25_000,
        task=_short_task(1.0),
        learner=replace(learner, ppo=replace(learner.ppo, num_epochs=1)),
    )


def _short_task(episode_s: float) -> TaskCfg:
    """Shorten the default episode, and the times of pushes and commands with it."""
    share = episode_s / TaskCfg().episode_s
    push, command = PushCfg(), CommandCfg()
    return TaskCfg(
        episode_s=episode_s,
        push=PushCfg(
            min_interval_s=share * push.min_interval_s,
            max_interval_s=share * push.max_interval_s,
        ),
        command=CommandCfg(hold_s=share * command.hold_s),
    )
