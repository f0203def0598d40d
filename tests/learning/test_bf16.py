"""Updates in bfloat16 start at ratio 1 and point where single precision points."""

from dataclasses import replace

import pytest
import torch
from toys import SMALL, SMALL_MLP, Falling, collect, make_learner, train

from horizon_rl.learning import TransformerCfg

ACTORS = pytest.mark.parametrize(
    "actor",
    [SMALL, replace(SMALL, num_layers=2, window=7), TransformerCfg(), SMALL_MLP],
    ids=["small", "two layers", "paper", "mlp"],
)


def collected(actor, **changes):
    """Return a learner that has learnt a little and has a full rollout."""
    env = Falling(16)
    learner = make_learner(env, actor, **changes)
    obs = env.reset()
    for _ in range(3):
        obs = collect(learner, env, obs)
        learner.update()
    collect(learner, env, obs)
    return learner


def use_bf16(learner):
    learner.gradient_steps.cfg = replace(learner.cfg, bf16=True)


def batch_of(learner):
    whole = learner.storage.whole_worlds
    return learner.storage.minibatch(torch.arange(16 if whole else 16 * 16))


def ratios(learner) -> torch.Tensor:
    batch = batch_of(learner)
    with torch.no_grad():
        learner.gradient_steps.evaluate_policy(batch)
        log_prob = learner.actor.get_output_log_prob(batch.actions)
    return (log_prob - batch.old_actions_log_prob.squeeze(-1)).exp()


def gradients(learner) -> dict[str, torch.Tensor]:
    learner.gradient_steps.optimizer.zero_grad()
    learner.gradient_steps.loss(batch_of(learner))[0].backward()
    models = learner.models.items()
    return {
        f"{prefix}.{name}": param.grad.clone()
        for prefix, model in models
        for name, param in model.named_parameters()
    }


@ACTORS
def test_ratio_starts_at_1_where_log_probs_are_recomputed(actor):
    learner = collected(actor)
    use_bf16(learner)
    biased = (ratios(learner) - 1.0).abs()
    learner.gradient_steps.recompute_log_probs()
    found = (ratios(learner) - 1.0).abs()
    assert found.max() < 1e-3
    # Without it, bfloat16 alone would look like a changed policy.
    assert biased.mean() > 10.0 * found.mean() and biased.max() > 1e-3


@ACTORS
def test_gradients_agree_with_single_precision(actor):
    learner = collected(actor)
    exact = gradients(learner)
    use_bf16(learner)
    learner.gradient_steps.recompute_log_probs()
    found = gradients(learner)
    for model in ("actor", "critic"):
        a, b = (
            torch.cat([g.flatten() for name, g in source.items() if model in name])
            for source in (exact, found)
        )
        assert (a - b).norm() < 0.05 * a.norm(), model
    # Also of what is first used for the past, where there is no gradient.
    for name, gradient in exact.items():
        assert (found[name] != 0).any() == (gradient != 0).any(), name


@ACTORS
def test_training_in_bf16_keeps_the_first_divergence_small(actor):
    env = Falling(16)
    learner = make_learner(env, actor, bf16=True, check_first_kl=True)
    figures = train(learner, env, 4)
    assert max(abs(f["first_kl"]) for f in figures) < 1e-5
    assert all(p.dtype == torch.float32 for p in learner.actor.parameters())
