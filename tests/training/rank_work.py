"""What the tests let two ranks do: python rank_work.py FOLDER.

Four sessions, one after the other: `die` and `fail` start a run, with a rank 1 that does
not get far; `measure` goes on with the run that was killed, and does what is best looked
at from inside, and leaves what it saw for the test to judge; `speak` is the command line.
"""

import atexit
import json
import os
import shutil
import signal
import sys
import traceback
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from rsl_rl.modules import EmpiricalNormalization
from small_runs import (
    GALE,
    STORM,
    assert_same,
    finish,
    leaping,
    poison,
    run_phases,
    stormy,
    tiny,
    weights,
)
from tensordict import TensorDict
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from horizon_rl.cli import main
from horizon_rl.curriculum import Entry
from horizon_rl.domains.distribution import AtLevels
from horizon_rl.learning import (
    CriticCfg,
    LearnerCfg,
    MlpCfg,
    PpoCfg,
    TransformerCfg,
    build_ppo,
    state_tensors,
)
from horizon_rl.support import ranks as ranks_module
from horizon_rl.support.errors import InputError, NonFiniteError, RunError
from horizon_rl.support.ranks import ALONE, Ranks, join
from horizon_rl.training.learner import TorchLearner
from horizon_rl.training.protocols import Iteration
from horizon_rl.training.run import Run

WIDTHS = {"actor": 5, "critic": 6, "privileged": 3}
ACTORS = {
    "mlp": MlpCfg(hidden_dims=(16,)),
    "transformer": TransformerCfg(
        embedding_dim=16, num_heads=2, feedforward_dim=32, window=7
    ),
}
KINDS = (*ACTORS, *(f"{actor} masked" for actor in ACTORS))
"""Of learners; some of what masked ones see they must not learn from."""
WORLDS, STEPS = 8, 4
"""Of each of two ranks; a process alone has twice as many worlds."""


def break_rank_1(at_iteration: int, how) -> None:
    iterate, calls = TorchLearner.iterate, []

    def broken(self, worlds):
        calls.append(worlds)
        if self.ranks.rank == 1 and len(calls) == at_iteration:
            how()
        return iterate(self, worlds)

    TorchLearner.iterate = broken


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail() -> None:
    raise RunError("the roof fell in")


# Learners: the same experience, cut in two halves, or whole.


def experience() -> TensorDict:
    """Return random observations and what came of them, [steps + 1, all worlds]."""
    rng = torch.Generator().manual_seed(1)
    shape = STEPS + 1, 2 * WORLDS

    def randn(*width):
        return torch.randn(*shape, *width, generator=rng)

    # Halves that differ, or averaging would not matter.
    shift = torch.linspace(-1.0, 1.0, 2 * WORLDS)
    groups = {k: randn(w) + shift.unsqueeze(-1) for k, w in WIDTHS.items()}
    reward = {"reward": randn() + 3.0 * shift, "done": randn() > 1.5}
    noise = randn(2)
    # Less to learn from on one rank than on the other.
    trains = (randn() + 2.0 * shift > 0.0).float()
    return TensorDict({**groups, **reward, "noise": noise, "trains": trains}, shape)


def learn(ranks: Ranks, data: TensorDict, kind: str):
    """Act on a rollout with given noise, and learn from it in one minibatch."""
    actor, _, masked = kind.partition(" ")
    torch.manual_seed(0)
    ppo = PpoCfg(num_steps=STEPS, num_epochs=3, num_minibatches=1)
    cfg = LearnerCfg(actor=ACTORS[actor], critic=CriticCfg(hidden_dims=(16,)), ppo=ppo)
    observations = data.select(*WIDTHS)
    learner = build_ppo(observations[0], 2, data.shape[1], cfg, ranks=ranks)
    with torch.no_grad():
        for t in range(STEPS):
            learner.act(observations[t])
            mean, std = (values[t] for values in learner.storage.distribution_params)
            actions = learner.storage.actions[t].copy_(mean + std * data["noise"][t])
            log_prob = torch.distributions.Normal(mean, std).log_prob(actions).sum(-1)
            learner.storage.actions_log_prob[t, :, 0] = log_prob
            reward, done = data["reward"][t], data["done"][t]
            extras = {"trains": data["trains"][t]} if masked else {}
            learner.process_env_step(observations[t + 1], reward, done, extras)
        learner.compute_returns(observations[STEPS])
    advantages = learner.storage.advantages.clone()
    steps = learner.gradient_steps
    steps.ids.copy_(torch.arange(len(steps.ids)))
    steps.compute_gradients()
    ranks.average(steps.gradient_and_figures)
    gradient = steps.gradient_and_figures.clone()
    figures = learner.update()
    return {"advantages": advantages, "gradient": gradient, "figures": figures} | {
        "tensors": {k: v.clone() for k, v in state_tensors(learner).items()}
    }


def halves(ranks: Ranks) -> dict:
    data, found = experience(), {}
    own = data[:, ranks.rank * WORLDS : (ranks.rank + 1) * WORLDS]
    for kind in KINDS:
        found[kind] = learn(ranks, own, kind)
    return found


def whole() -> dict:
    return {kind: learn(ALONE, experience(), kind) for kind in KINDS}


def normalise(rows: torch.Tensor) -> dict:
    normaliser = EmpiricalNormalization(3)
    for batch in rows.chunk(2):
        normaliser.update(batch)
    return normaliser.state_dict()


def normaliser_rows() -> torch.Tensor:
    """Return [two batches, two ranks, rows, 3]."""
    rng = torch.Generator().manual_seed(2)
    rows = torch.randn(2, 2, 6, 3, generator=rng)
    return rows * torch.tensor([1.0, 5.0, 0.1]) + torch.arange(4.0).view(2, 2, 1, 1)


# Runs.


CFG = stormy(window=100, rollback_rate=0.5)


def train(ranks: Ranks, path: Path) -> None:
    finish(Run.create(CFG, STORM, path, "cpu", ranks))


def resume(ranks: Ranks, path: Path) -> None:
    finish(Run.resume(path, device="cpu", ranks=ranks))


@torch.no_grad()
def spoil(run: Run, by: float) -> None:
    state_tensors(run.learner.algorithm)["critic.mlp.0.bias"] += by


def cut_in_two(ranks: Ranks, path: Path) -> dict:
    """Train two phases, the second rolled back, and the others after a resume."""
    torch.manual_seed(ranks.rank)
    run = Run.create(CFG, STORM, path, "cpu", ranks)
    spoil(run, float(ranks.rank))  # Only rank 0's weights count.
    scenarios = run.worlds._draw(0, AtLevels({})).scenarios
    run_phases(run, 2)
    before = run.learner.algorithm.learning_rate
    run = Run.resume(path, device="cpu", ranks=ranks)
    algorithm: Any = run.learner.algorithm
    return {
        "entries": finish(run),
        "rates": (before, run.learner.algorithm.learning_rate),
        "env_steps": run.curriculum.state.env_steps,
        "tensors": weights(run),
        "commands": torch.as_tensor(scenarios.commands),
        "actions": algorithm.storage.actions,
    }


def cut_on_hold(ranks: Ranks, path: Path) -> dict:
    """Run by HORIZON; go on from a phase on hold, which is then rolled back."""
    cfg = leaping(window=100, rollback_rate=0.5)
    whole = Run.create(cfg, GALE, path / "whole", "cpu", ranks)
    finish(whole)
    run_phases(Run.create(cfg, GALE, path / "cut", "cpu", ranks), 4)
    run = Run.resume(path / "cut", device="cpu", ranks=ranks)
    finish(run)
    assert_same(weights(run), weights(whole))
    return {"whole": whole.curriculum.entries, "cut": run.curriculum.entries}


def replayed(ranks: Ranks, path: Path) -> dict:
    """Train by PLR, whole and cut in two; return the entries and what was learnt."""
    cfg = tiny(method="plr", max_phases=3)
    whole = Run.create(cfg, STORM, path / "whole", "cpu", ranks)
    finish(whole)
    run_phases(Run.create(cfg, STORM, path / "cut", "cpu", ranks), 2)
    run = Run.resume(path / "cut", device="cpu", ranks=ranks)
    finish(run)
    assert_same(weights(run), weights(whole))
    return {"entries": whole.curriculum.entries, "tensors": weights(whole)}


def spent_minutes(ranks: Ranks, path: Path) -> list[int]:
    """Train for a moment, rank 1 by a clock that stands still."""
    run = Run.create(tiny(minutes=1e-4), STORM, path, "cpu", ranks)
    run.trained_s = -1e9 * ranks.rank
    events = list(run.events())
    run.close()
    return [event.number for event in events if isinstance(event, Iteration)]


def disagree(ranks: Ranks, path: Path) -> str:
    """Train while something adds to a weight of rank 1."""
    run = Run.create(tiny(), STORM, path, "cpu", ranks)
    with raising(RunError) as message:
        for _ in run.events():
            spoil(run, 1e-7 * ranks.rank)
    run.close()
    return message[0]


def collapse(ranks: Ranks, path: Path) -> list[Entry]:
    """Give rank 1 a reward that is no number, on a frontier."""
    run = Run.create(tiny(max_phases=2), STORM, path, "cpu", ranks)
    if ranks.rank == 1:
        poison(run, phase=1, iteration=1)
    entries = run_phases(run, 2)
    before = {k: v.clone() for k, v in weights(run).items()}
    ranks.share(before.values())
    assert_same(before, weights(run))
    return entries


def refuse(ranks: Ranks) -> str:
    """Give rank 1 a reward that is no number."""
    data = experience()[:, :WORLDS]
    data["reward"][0, 0] = float("nan") if ranks.rank else 0.0
    with raising(NonFiniteError) as message:
        learn(ranks, data, "mlp")
    return message[0]


def resume_alone(path: Path) -> str:
    with raising(InputError) as message:
        Run.resume(path, device="cpu")
    return message[0]


@contextmanager
def raising(kind):
    message = []
    try:
        yield message
    except kind as error:
        message.append(str(error))
    assert message, f"no {kind.__name__} on this rank"


def measure(ranks: Ranks, out: Path) -> None:
    rows = normaliser_rows()[:, ranks.rank].flatten(0, 1)
    train(ranks, out / "finished")
    resume(ranks, out / "killed")
    found = {
        "size": ranks.size,
        "halves": halves(ranks),
        "normaliser": normalise(rows),
        "cut": cut_in_two(ranks, out / f"cut-{ranks.rank}"),
        "held": cut_on_hold(ranks, out / "held"),
        "replayed": replayed(ranks, out / "replayed"),
        "minutes": spent_minutes(ranks, out / "minutes"),
        "disagreement": disagree(ranks, out / "disagreement"),
        "collapse": collapse(ranks, out / "collapse"),
        "refusal": refuse(ranks),
        "resumed": resume_alone(out / "cut-0"),
        "once": ranks.once(lambda: ranks.rank),
        "gathered": ranks.gather(ranks.rank),
    }
    torch.save(found, out / f"rank-{ranks.rank}.pt")
    print(f"rank {ranks.rank} speaks")


# Sessions.


SPEAK = (
    *("train", "--preset", "smoke", "--num-envs", "8", "--task.episode-s", "0.4"),
    *("--learner.ppo.num-steps", "8", "--steps", "1500", "--table", "0"),
    *("--learner.actor.hidden-dims", "32", "--device", "cpu"),
)


def work(what: str, out: Path) -> None:
    """Do what one rank of a session does, with its output in files."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        file = os.open(out / f"{what}.{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, number)
    # Here rank 1 fails alone: it need not wait, and rank 0 waits until it is ended.
    ranks_module.GRACE_S, ranks_module.PATIENCE_S = 0.0, 900.0
    try:
        if what == "speak":
            assert main([*SPEAK, "--run", str(out / what)]) == 0
            return
        if what != "measure":
            break_rank_1(10, die if what == "die" else fail)
        with join("cpu") as ranks:
            if what == "measure":
                measure(ranks, out)
            else:
                train(ranks, out / what)
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        atexit._run_exitfuncs()  # As a process that was not forked ends.


def launch(what: str, out: Path) -> bool:
    """Start two ranks as torchrun does, but forked: they have all imports already."""
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=2,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        run_id=what,
        max_restarts=0,
        start_method="fork",
    )
    try:
        elastic_launch(config, work)(what, out)
    except ChildFailedError:
        return False
    return True


if __name__ == "__main__":
    out = Path(sys.argv[1])
    ended_well = {what: launch(what, out) for what in ("die", "fail")}
    shutil.copytree(out / "die", out / "killed")
    ended_well |= {what: launch(what, out) for what in ("measure", "speak")}
    (out / "sessions.json").write_text(json.dumps(ended_well))
