"""From settings and the shapes of observations to something that learns."""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from tensordict import TensorDict

from horizon_rl.learning.algorithm import ALGORITHMS, Algorithm, register_algorithm
from horizon_rl.learning.config import ActorCfg, LearnerCfg, MlpCfg, PpoCfg
from horizon_rl.learning.distill import MEAN, STD, Distillation, ImitationSteps
from horizon_rl.learning.gram import Gram
from horizon_rl.learning.gram_networks import (
    LATENT,
    Adversary,
    ContextEncoder,
    GramActor,
    GramCritic,
)
from horizon_rl.learning.gram_steps import (
    HISTORY,
    PUSH,
    ROBUST,
    AdversarySteps,
    ContextSteps,
    HistorySteps,
)
from horizon_rl.learning.mirror import InstanceImage, Mirror
from horizon_rl.learning.networks import Actor, PrivilegedCritic
from horizon_rl.learning.ppo import Ppo
from horizon_rl.learning.storage import SequenceStorage
from horizon_rl.learning.transformer import TransformerActor
from horizon_rl.learning.update import ExtraLoss, GradientSteps
from horizon_rl.support.errors import InputError, unknown
from horizon_rl.support.graphs import set_matmul_precision
from horizon_rl.support.ranks import ALONE, Ranks


def build_learner(
    observations: TensorDict,
    num_actions: int,
    num_envs: int,
    cfg: LearnerCfg,
    device: str | torch.device = "cpu",
    ranks: Ranks = ALONE,
    teachers: Sequence[Actor] = (),
    image: InstanceImage | None = None,
) -> Algorithm:
    """Build what `cfg.algorithm` names; torch's seed sets the weights.

    Args:
        observations: The groups that the networks read, for their shapes.
        num_actions: Width of an action.
        num_envs: Worlds that will be collected from, by this rank.
        cfg: What to build.
        device: Where it lives.
        ranks: Who else learns, each from its own worlds.
        teachers: Whom to learn from, as `cfg.distill` says; `observations` then have the
            group `teacher`. They are built for rollouts of `cfg.ppo.num_steps`.
        image: The mirror image of the group `privileged`, which a symmetric oracle needs.
    """
    if cfg.algorithm not in ALGORITHMS:
        raise InputError(unknown("algorithm", cfg.algorithm, ALGORITHMS))
    set_matmul_precision(device, cfg.matmul)
    build: Callable[..., Algorithm] = ALGORITHMS[cfg.algorithm].build
    if teachers:
        build = partial(build_distillation, teachers=teachers)
    if cfg.actor.symmetric and cfg.actor.privileged_groups:
        if cfg.algorithm != "ppo":
            raise InputError(
                f"algorithm {cfg.algorithm} has no symmetric oracle; accepted: ppo, or "
                "--learner.actor.no-symmetric"
            )
        build = partial(build, image=image)
    return build(observations, num_actions, num_envs, cfg, str(device), ranks)


@register_algorithm("ppo")
def build_ppo(
    observations: TensorDict,
    num_actions: int,
    num_envs: int,
    cfg: LearnerCfg,
    device: str = "cpu",
    ranks: Ranks = ALONE,
    extra_losses: tuple[ExtraLoss, ...] = (),
    image: InstanceImage | None = None,
) -> Ppo:
    """Build actor, critic, storage and PPO: see `build_learner`, `GradientSteps`."""
    ppo = cfg.ppo
    _check_minibatches(num_envs, ppo)
    actor = build_actor(observations, num_actions, cfg.actor, ppo.num_steps, image)
    _check_groups(observations, cfg.critic.obs_groups, cfg.critic.privileged_groups)
    critic = PrivilegedCritic(observations, cfg.critic)
    storage = SequenceStorage(
        num_envs, observations, num_actions, ppo, actor.is_recurrent, device
    )
    steps = GradientSteps(
        actor, critic, storage, device, ranks, extra_losses, cfg.compiles("update")
    )
    return Ppo(steps)


def build_distillation(
    observations: TensorDict,
    num_actions: int,
    num_envs: int,
    cfg: LearnerCfg,
    device: str = "cpu",
    ranks: Ranks = ALONE,
    *,
    teachers: Sequence[Actor],
    image: InstanceImage | None = None,
) -> Distillation:
    """Build PPO, and what comes before it: see `build_learner`."""
    blank = torch.zeros(len(observations), num_actions, device=observations.device)
    rollout = observations.copy().update({MEAN: blank, STD: blank.clone()})
    ppo = build_ppo(rollout, num_actions, num_envs, cfg, device, ranks, image=image)
    steps = ImitationSteps(ppo.gradient_steps, cfg.distill, cfg.compiles("update"))
    return Distillation(ppo, steps, teachers, cfg.distill)


def build_gram_actor(
    observations: TensorDict, num_actions: int, cfg: LearnerCfg, num_steps: int = 24
) -> GramActor:
    """Build GRAM's actor alone: see `build_policy`."""
    assert isinstance(cfg.actor, MlpCfg)  # As `LearnerCfg` has checked.
    _check_groups(observations, cfg.actor.obs_groups)
    return GramActor(observations, num_actions, cfg.actor, cfg.gram)


@register_algorithm("gram", build_gram_actor)
def build_gram(
    observations: TensorDict,
    num_actions: int,
    num_envs: int,
    cfg: LearnerCfg,
    device: str = "cpu",
    ranks: Ranks = ALONE,
) -> Gram:
    """Build GRAM's networks, PPO and what else learns: see `build_learner`."""
    if ranks.size > 1:
        raise InputError(
            f"GRAM trains on one rank, not on {ranks.size}: start it without torchrun"
        )
    gram, compiles, groups = cfg.gram, cfg.compiles("update"), cfg.critic
    _check_minibatches(num_envs, cfg.ppo)
    _check_groups(observations, groups.obs_groups, groups.privileged_groups)
    actor = build_gram_actor(observations, num_actions, cfg)
    context = ContextEncoder(observations, groups.privileged_groups, gram)
    critic = GramCritic(observations, groups, gram.latent_dim)
    adversary = Adversary(observations, cfg.actor.obs_groups, gram)
    widths = {LATENT: gram.latent_dim, ROBUST: 1, PUSH: 4}
    widths[HISTORY] = gram.history * actor.obs_dim
    blank = observations["actor"].new_zeros
    added = {name: blank(len(observations), width) for name, width in widths.items()}
    rollout = observations.copy().update(added)
    storage = SequenceStorage(num_envs, rollout, num_actions, cfg.ppo, False, device)
    # PPO's optimiser must leave it alone: it learns once PPO is through.
    actor.history.requires_grad_(False)
    steps = ContextSteps(actor, critic, context, storage, device, compiles)
    for part in (actor.history.trunk, actor.history.head, actor.history.epinet):
        part.requires_grad_(True)
    return Gram(
        Ppo(steps),
        steps,
        AdversarySteps(adversary, storage, device),
        HistorySteps(actor, context, storage, device, gram),
        gram,
    )


def build_policy(
    observations: TensorDict,
    num_actions: int,
    cfg: LearnerCfg,
    num_steps: int = 24,
    image: InstanceImage | None = None,
) -> Actor:
    """Build the actor of an algorithm alone, on the CPU: enough to run a policy.

    That of an algorithm nobody has registered is taken to be the settings'.
    """
    registered = ALGORITHMS.get(cfg.algorithm)
    if registered and registered.build_actor:
        return registered.build_actor(observations, num_actions, cfg, num_steps)
    return build_actor(observations, num_actions, cfg.actor, num_steps, image)


def build_actor(
    observations: TensorDict,
    num_actions: int,
    cfg: ActorCfg,
    num_steps: int = 24,
    image: InstanceImage | None = None,
) -> Actor:
    """Build an actor alone, on the CPU: enough to run a policy."""
    _check_groups(
        observations, cfg.obs_groups, (*cfg.obs_groups, *cfg.privileged_groups)
    )
    view = _build_mirror(cfg, image) if cfg.symmetric else None
    if isinstance(cfg, MlpCfg):
        layers = cfg.hidden_dims, cfg.activation
        return Actor(observations, num_actions, cfg, *layers, view)
    return TransformerActor(observations, num_actions, cfg, num_steps, view)


def _build_mirror(cfg: ActorCfg, image: InstanceImage | None) -> Mirror:
    # Here alone: nothing else in learning depends on the task.
    from horizon_rl.task.mirror import ACTION, OBSERVATION, join

    if not cfg.privileged_groups:
        return Mirror(OBSERVATION, ACTION)
    if image is None:
        raise InputError(
            "nothing tells a symmetric oracle the mirror image of its instance; "
            "accepted: --learner.actor.no-symmetric"
        )
    return Mirror(join((OBSERVATION, image())), ACTION)


def _check_minibatches(num_envs: int, cfg: PpoCfg) -> None:
    if num_envs < cfg.num_minibatches:
        raise InputError(
            f"{num_envs} environments cannot be cut into {cfg.num_minibatches}"
            " minibatches: use more of these or fewer of those"
        )


def _check_groups(observations: TensorDict, *networks: tuple[str, ...]) -> None:
    """Refuse networks that read groups which do not exist, or none."""
    existing = [str(group) for group in observations.keys()]
    for groups in networks:
        missing = [group for group in groups if group not in existing]
        if missing or not groups:
            raise InputError(
                f"a network reads the observations {list(groups)}; accepted: one or "
                f"more of {', '.join(existing)}"
            )
