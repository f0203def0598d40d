"""Small worlds to learn in, and what trains in them."""

from dataclasses import replace
from typing import Any

import torch
from tensordict import TensorDict

from horizon_rl.learning import (
    ActorCfg,
    Algorithm,
    CriticCfg,
    LearnerCfg,
    MlpCfg,
    PpoCfg,
    TransformerCfg,
    build_learner,
)

SMALL = TransformerCfg(
    embedding_dim=32, num_heads=4, feedforward_dim=64, window=15, initial_std=0.6
)
SMALL_MLP = MlpCfg(hidden_dims=(32, 32), initial_std=0.6)
CRITIC = CriticCfg(hidden_dims=(32, 32), encoder_dim=8)
PPO = PpoCfg(num_steps=16, num_epochs=4, learning_rate=1e-3)


def make_learner(env, actor: ActorCfg = SMALL, seed: int = 0, **changes) -> Any:
    """Build a learner; Any, since tests reach into actors of both kinds."""
    torch.manual_seed(seed)
    cfg = LearnerCfg(actor=actor, critic=CRITIC, ppo=replace(PPO, **changes))
    return build_learner(env.reset(), env.num_actions, env.num_envs, cfg)


@torch.inference_mode()  # As upstream's runner does; `test_page` uses no_grad.
def collect(learner: Algorithm, env, obs: TensorDict) -> TensorDict:
    for _ in range(learner.num_steps):
        obs, reward, done, extras = env.step(learner.act(obs))
        learner.process_env_step(obs, reward, done, extras)
    learner.compute_returns(obs)
    return obs


def train(learner: Algorithm, env, num_iterations: int) -> list[dict[str, float]]:
    obs, figures = env.reset(), []
    for _ in range(num_iterations):
        obs = collect(learner, env, obs)
        figures.append(learner.update())
    return figures


class _Toy:
    """Episodes end by a timeout after `max_steps`, or by chance before."""

    num_actions = 2
    max_steps = 12
    fall_rate = 0.0

    def __init__(self, num_envs: int, seed: int = 0):
        self.num_envs = num_envs
        self.rng = torch.Generator().manual_seed(seed)

    def reset(self) -> TensorDict:
        self.age = torch.zeros(self.num_envs, dtype=torch.long)
        self.begin(torch.ones(self.num_envs, dtype=torch.bool))
        return self.observe()

    def step(self, actions):
        reward = self.advance(actions)
        self.age = self.age + 1
        fell = self.rand(self.num_envs) < self.fall_rate
        timed_out = (self.age >= self.max_steps) & ~fell
        done = fell | timed_out
        self.age = torch.where(done, 0, self.age)
        self.begin(done)
        return self.observe(), reward, done, {"time_outs": timed_out}

    def observe(self) -> TensorDict:
        seen, state = self.sense()
        groups = {"actor": seen, "critic": state, "privileged": state[:, -2:]}
        return TensorDict(groups, [self.num_envs])

    def begin(self, mask: torch.Tensor) -> None:
        """Reset the worlds in `mask` [n]."""
        raise NotImplementedError

    def advance(self, actions: torch.Tensor) -> torch.Tensor:
        """Take actions [n, 2] and return rewards [n]."""
        raise NotImplementedError

    def sense(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what the actor sees and what the critic knows."""
        raise NotImplementedError

    def rand(self, *shape):
        return torch.rand(*shape, generator=self.rng)


class PointMass(_Toy):
    """A point that is moved by its velocity towards a target; all is seen."""

    state = torch.zeros(4)

    def begin(self, mask):
        fresh = 4.0 * self.rand(self.num_envs, 4) - 2.0
        self.state = torch.where(mask.unsqueeze(1), fresh, self.state)

    def advance(self, actions):
        position, target = self.state.chunk(2, dim=1)
        position = position + 0.5 * actions.clamp(-2.0, 2.0)
        self.state = torch.cat((position, target), dim=1)
        return -(position - target).norm(dim=1)

    def sense(self):
        return self.state, self.state


class Falling(PointMass):
    """The same, with episodes that end at any time."""

    fall_rate = 0.1


class Recall(_Toy):
    """Say again what was shown in the first step of the episode, and never since."""

    cue = torch.zeros(2)

    def begin(self, mask):
        fresh = 2.0 * (self.rand(self.num_envs, 2) > 0.5) - 1.0
        self.cue = torch.where(mask.unsqueeze(1), fresh, self.cue)

    def advance(self, actions):
        return -(actions - self.cue).square().mean(dim=1)

    def sense(self):
        shown = self.cue * (self.age == 0).unsqueeze(1)
        noise = self.rand(self.num_envs, 1)
        return torch.cat((shown, noise), dim=1), torch.cat((shown, self.cue), dim=1)


def gradients(ppo: Any) -> torch.Tensor:
    """Return gradients and figures of minibatches of what PPO has collected."""
    torch.manual_seed(2)
    steps, found = ppo.gradient_steps, []
    for ids in list(ppo.storage.minibatch_ids())[:3]:
        steps.ids.copy_(ids)
        steps.compute_gradients()
        found.append(steps.gradient_and_figures.clone())
    return torch.stack(found)
