"""HORIZON's curriculum in mjlab: its event manager's ranges widen by evidence.

    pip install mjlab==1.6.0
    pip install --no-deps -e .    # in a clone; the core needs numpy, tyro and rich alone
    python examples/mjlab_curriculum.py --num-envs 4096 --phases 40

mjlab's own Go1 task and runner, unforked. A curriculum term sets the ranges of event terms
and notes every episode that ends; `MjlabWorlds` and `RunnerLearner` tell the package's
training loop about both.
"""
# mjlab pins another MuJoCo than this package's extras and lives in its own environment.
# pyright: reportMissingImports=false

import argparse
import copy
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from math import log
from typing import Any

import numpy as np
import torch
from mjlab.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from mjlab.envs.mdp import dr
from mjlab.managers.curriculum_manager import CurriculumTermCfg
from mjlab.managers.event_manager import EventTermCfg
from mjlab.managers.scene_entity_config import SceneEntityCfg
from mjlab.rl import MjlabOnPolicyRunner, RslRlVecEnvWrapper
from mjlab.tasks.velocity.config.go1.env_cfgs import unitree_go1_flat_env_cfg
from mjlab.tasks.velocity.config.go1.rl_cfg import unitree_go1_ppo_runner_cfg

from horizon_rl.curriculum import (
    Curriculum,
    CurriculumCfg,
    Entry,
    Episodes,
    GateCfg,
    Paper,
    ProbeSet,
    phase_rng,
)
from horizon_rl.curriculum.evidence import ProbedEpisodes
from horizon_rl.domains import AtLevels, Distribution, Range, Ranges, parse_catalogue
from horizon_rl.training.loop import run_phases
from horizon_rl.training.protocols import Iteration, Learner, Worlds

CATALOGUE = parse_catalogue("""
[groups.mass.parameters]
scale = { baseline = [0.9, 1.1], limit = [0.4, 5.0] }
[groups.com.parameters]
offset = { baseline = [-0.003, 0.003], limit = [-0.3, 0.3], unit = "m" }
[groups.contact.parameters]
friction = { baseline = [0.4, 1.5], limit = [0.05, 4.0] }
[groups.disturbance.parameters]
push_velocity = { baseline = [-0.5, 0.5], limit = [-5.0, 5.0], unit = "m/s" }
""")

Params = Callable[[Range], dict[str, Any]]

# In mjlab mass and inertia scale by exp(2 alpha), and alpha is drawn evenly.
EVENTS: Mapping[str, tuple[str, Params]] = {
    "mass.scale": (
        "trunk_density",
        lambda r: {"alpha_range": (0.5 * log(r.low), 0.5 * log(r.high))},
    ),
    "com.offset": (
        "base_com",
        lambda r: {"ranges": dict.fromkeys(range(3), (r.low, r.high))},
    ),
    "contact.friction": ("foot_friction_slide", lambda r: {"ranges": (r.low, r.high)}),
    "disturbance.push_velocity": (
        "push_robot",
        lambda r: {"velocity_range": dict.fromkeys("xy", (r.low, r.high))},
    ),
}
"""By parameter: the event term that draws it, and that term's params for a range."""

TERM, COMMAND = "horizon", "twist"


class HorizonTerm:
    """Curriculum term: ranges go in by `widen`, episodes that ended come out."""

    def __init__(self, cfg: CurriculumTermCfg, env: ManagerBasedRlEnv):
        self._env = env
        self._levels: dict[str, float] = {}
        self._first_step = 0
        self._ended: list[torch.Tensor] = []

    def __call__(
        self, env: ManagerBasedRlEnv, env_ids: torch.Tensor
    ) -> dict[str, float]:
        """Note the episodes that end: mjlab calls this just before it resets them."""
        length = env.episode_length_buf[env_ids].float()
        command = env.command_manager.get_term(COMMAND)
        # mjlab sums the error over the steps of its longest command.
        steps = command.cfg.resampling_time_range[1] / env.step_dt
        error = command.metrics["error_vel_xy"][env_ids] * steps / length.clamp(min=1.0)
        start = env.common_step_counter - self._first_step - length
        self._ended.append(torch.stack((start, length, error))[:, length > 0])
        return self._levels  # Logged as Curriculum/horizon/mass, ...

    def widen(self, levels: Mapping[str, float], ranges: Ranges) -> None:
        """Let worlds that reset from now on draw from `ranges`."""
        for name, (term, params) in EVENTS.items():
            event = self._env.event_manager.get_term_cfg(term)
            event.params.update(params(ranges[name]))
        self._levels = dict(levels)

    def begin(self) -> None:
        """Count steps and episodes from here."""
        self._ended, self._first_step = [], self._env.common_step_counter

    def episodes(self) -> Episodes:
        """Return the episodes that ended since `begin`."""
        ended = [np.zeros((3, 0)), *(part.cpu().numpy() for part in self._ended)]
        return Episodes(*np.concatenate(ended, axis=1))


def env_cfg(num_envs: int, episode_s: float = 20.0) -> ManagerBasedRlEnvCfg:
    """Return mjlab's Go1 on flat ground, its physics drawn at every reset."""
    cfg = unitree_go1_flat_env_cfg()
    cfg.scene.num_envs, cfg.episode_length_s = num_envs, episode_s
    cfg.events["trunk_density"] = EventTermCfg(
        func=dr.pseudo_inertia,
        mode="reset",
        params={"asset_cfg": SceneEntityCfg("robot", body_names=("trunk",))},
    )
    for name in ("base_com", "foot_friction_slide"):
        cfg.events[name].mode = "reset"
    # Mass and centre of mass write the same fields: density first, offset on top of it.
    cfg.events["base_com"] = cfg.events.pop("base_com")
    cfg.curriculum = {TERM: CurriculumTermCfg(func=HorizonTerm)}
    return cfg


class MjlabWorlds(Worlds):
    """mjlab's worlds; mjlab's runner steps them."""

    def __init__(self, env: RslRlVecEnvWrapper, seed: int = 0):
        self._env, self._seed = env, seed
        self._term: HorizonTerm = env.unwrapped.curriculum_manager.get_term_cfg(
            TERM
        ).func
        self.max_length = env.max_episode_length

    def begin(self, phase: int, distribution: Distribution) -> None:
        self._reset(distribution, phase, stream=0)

    def episodes(self, parameters: tuple[str, ...] | None = None) -> Episodes:
        return self._term.episodes()

    @torch.inference_mode()
    def probe(
        self, policy: Any, sets: Mapping[str, ProbeSet]
    ) -> dict[str, ProbedEpisodes]:
        """Run the mean policy through each world's first episode.

        Two probes of one set start alike, world by world; once robots have fallen at
        different times, mjlab draws the pushes that follow in another order.
        """
        found = {}
        for name, wanted in sets.items():
            observations = self._reset(wanted.distribution, wanted.phase or 0, stream=1)
            running = torch.ones(self._env.num_envs, dtype=torch.bool)
            running = running.to(self._env.device)
            total = torch.zeros(self._env.num_envs, device=self._env.device)
            for _ in range(self.max_length):
                observations, reward, done, _ = self._env.step(policy(observations))
                total += reward * running
                running &= done == 0
            episodes = self._term.episodes()
            first = episodes.start <= 0
            found[name] = ProbedEpisodes(
                episodes.length[first],
                episodes.tracking_error[first],
                total.cpu().numpy(),
            )
        return found

    def _reset(self, distribution: Distribution, phase: int, stream: int) -> Any:
        """Reset all worlds to ranges and a seed; return what they show."""
        assert isinstance(distribution, AtLevels), "mjlab's events draw from ranges"
        levels = distribution.levels
        self._term.widen(levels, CATALOGUE.ranges(levels))
        rng = phase_rng(self._seed, phase, rank=stream)
        self._env.seed(int(rng.integers(1 << 31)))
        observations, _ = self._env.reset()
        self._term.begin()
        return observations


class RunnerLearner(Learner):
    """mjlab's runner; an iteration of the loop is a whole phase of its own."""

    def __init__(self, runner: MjlabOnPolicyRunner, iterations: int):
        self._runner, self._iterations = runner, iterations
        self.num_steps = iterations * runner.cfg["num_steps_per_env"]
        self.steps_per_iteration = self.num_steps * runner.env.num_envs

    @property
    def policy(self) -> Any:
        return self._runner.get_inference_policy(device=str(self._runner.env.device))

    def begin(self, worlds: MjlabWorlds) -> None: ...

    def iterate(self, worlds: MjlabWorlds) -> Iteration:
        self._runner.learn(self._iterations)
        return Iteration()

    def snapshot(self) -> dict[str, Any]:
        return copy.deepcopy(self._runner.alg.save())

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Bring back weights, normalisers, optimiser and learning rate."""
        algorithm = self._runner.alg
        # rsl_rl's normalisers learn in inference mode and can only be written in it;
        # what Adam gets there, it could never change again.
        with torch.inference_mode():
            algorithm.load(snapshot, {"actor": True, "critic": True}, strict=True)
        algorithm.load(copy.deepcopy(snapshot), {"optimizer": True}, strict=True)


def train(
    env: RslRlVecEnvWrapper,
    runner: MjlabOnPolicyRunner,
    cfg: CurriculumCfg,
    *,
    iterations: int,
    seed: int = 0,
) -> list[Entry]:
    """Widen the events' ranges as long as the policy stays recoverable."""
    # mjlab's worlds share their ranges: every level that HORIZON scouts would cost all of
    # them an episode. The paper's rule needs no scouts.
    curriculum = Curriculum(CATALOGUE.names, Paper(cfg=cfg))
    worlds, learner = MjlabWorlds(env, seed), RunnerLearner(runner, iterations)
    for event in run_phases(curriculum, worlds, learner):
        if isinstance(event, Entry):
            print(f"phase {event.proposal.phase}: {event.decision.reason}")
    return curriculum.entries


def main() -> None:
    parser = argparse.ArgumentParser(description="Widen mjlab's events.")
    parser.add_argument("--num-envs", type=int, default=4096)
    parser.add_argument("--phases", type=int, default=40)
    parser.add_argument("--iterations", type=int, default=110, help="of a phase")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--log-dir", default="logs/mjlab_horizon")
    args = parser.parse_args()
    env = ManagerBasedRlEnv(cfg=env_cfg(args.num_envs), device=args.device)
    wrapped = RslRlVecEnvWrapper(env)
    agent = asdict(replace(unitree_go1_ppo_runner_cfg(), logger="tensorboard"))
    runner = MjlabOnPolicyRunner(wrapped, agent, args.log_dir, args.device)
    # mjlab pushes every 1 to 3 s, five times as often as our task: errors are larger.
    cfg = CurriculumCfg(gates=GateCfg(max_error=0.6), max_phases=args.phases)
    train(wrapped, runner, cfg, iterations=args.iterations)


if __name__ == "__main__":
    main()
