"""Terms that are added to PPO's loss from outside."""

from dataclasses import dataclass

import torch
from toys import CRITIC, PPO, SMALL, SMALL_MLP, PointMass, make_learner, train

from horizon_rl.learning import ActorCfg, LearnerCfg, build_ppo, state_tensors
from horizon_rl.learning.update import LOSS_FIGURES


@dataclass(frozen=True)
class PullMeans:
    """Pulls the means of all actions to a target."""

    target: float
    weight: float
    figures = ("distance",)

    def __call__(self, batch, actor, critic):
        distance = (actor.output_mean - self.target).square().mean()
        return self.weight * distance, {"distance": distance}


def make_pulled(*losses: PullMeans, actor: ActorCfg = SMALL_MLP):
    torch.manual_seed(0)
    cfg = LearnerCfg(actor=actor, critic=CRITIC, ppo=PPO)
    return build_ppo(PointMass(16).reset(), 2, 16, cfg, extra_losses=losses)


def test_extra_loss_pulls_the_means_of_actions():
    for actor in (SMALL_MLP, SMALL):
        learner = make_pulled(PullMeans(0.7, weight=100.0), actor=actor)
        figures = train(learner, PointMass(16), 20)
        assert figures[0]["distance"] > 0.2, actor
        assert figures[-1]["distance"] < 0.05, actor
        others = {"actor_grad_norm", "critic_grad_norm", "first_kl", "learning_rate"}
        assert set(figures[0]) == {*LOSS_FIGURES, "distance", *others}


def test_extra_loss_of_no_weight_changes_no_bit():
    def train_from_seed(learner):
        torch.manual_seed(1)
        return train(learner, PointMass(16), 2)

    plain = make_learner(PointMass(16), SMALL_MLP)
    weightless = make_pulled(PullMeans(0.7, weight=0.0))
    figures, expected = train_from_seed(weightless), train_from_seed(plain)
    assert [f.pop("distance") > 0.0 for f in figures] == [True, True]
    assert figures == expected
    for name, value in state_tensors(plain).items():
        assert torch.equal(value, state_tensors(weightless)[name]), name
