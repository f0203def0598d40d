"""Distillation in the simulator: domains, costs, resume, and who is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import (
    ACTORS,
    CRITIC,
    PHASE_STEPS,
    PPO,
    STORM,
    actions,
    assert_same,
    create,
    finish,
    journal,
    resume,
    run_phases,
    stormy,
    tiny,
    weights,
)

from horizon_rl.cli import main
from horizon_rl.curriculum import Entry, Teacher
from horizon_rl.curriculum.methods import Distill
from horizon_rl.domains import OneOf, paper_catalogue
from horizon_rl.domains.distribution import TEACHER
from horizon_rl.evaluation.studies.study import measure_costs
from horizon_rl.learning import DistillCfg, LearnerCfg
from horizon_rl.learning.distill import MEAN
from horizon_rl.policies.learned import load_actor
from horizon_rl.policies.shipped import find_checkpoint, read_model
from horizon_rl.policies.teachers import check_teachers, load_teacher
from horizon_rl.runs.paths import journal_of
from horizon_rl.runs.read import read_run
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import decode, encode
from horizon_rl.task import TaskCfg

PAPER = paper_catalogue()
OTHER = LearnerCfg(actor=ACTORS["mlp"], critic=CRITIC, ppo=PPO, algorithm="gram")
OPTIONS = pytest.mark.parametrize(
    "kind, options",
    [
        ("mlp", {"mode": "dagger"}),
        ("transformer", {"mode": "offline"}),
        ("mlp", {"mode": "offline", "ppo_from": 0.4}),
    ],
    ids=["dagger", "offline", "then-ppo"],
)


@pytest.fixture(scope="module")
def teachers(tmp_path_factory):
    """Return two experts: one of mass, without a memory, and one of com, with one."""
    folder = tmp_path_factory.mktemp("teachers")
    for seed, (group, kind) in enumerate({"mass": "mlp", "com": "transformer"}.items()):
        cfg = tiny(kind, groups=group, max_phases=2, seed=seed)
        finish(create(cfg, folder / group, PAPER))
    return folder / "mass", folder / "com"


def taught(teachers, kind="mlp", max_phases=3, **options: Any):
    learner = LearnerCfg(
        actor=ACTORS[kind], critic=CRITIC, ppo=PPO, distill=DistillCfg(**options)
    )
    sources = tuple(map(str, teachers))
    cfg = tiny(method="distill", max_phases=max_phases, stagger=True)
    return replace(cfg, teachers=sources, learner=learner)


def cost_of(*runs) -> int:
    return sum(read_run(journal_of(run)).journal.state.env_steps for run in runs)


def teachers_of(run) -> tuple[Teacher, ...]:
    method = run.curriculum.method
    assert isinstance(method, Distill)
    return method.teachers


def test_every_world_is_of_the_domain_of_its_teacher(tmp_path, teachers):
    run = create(taught(teachers), tmp_path / "run", PAPER)
    levels = [
        read_run(journal_of(teacher)).journal.state.mastered for teacher in teachers
    ]
    assert teachers_of(run)[0].levels == levels[0]
    assert levels[0].keys() == {"mass"} and levels[0]["mass"] > 0.0
    run_phases(run, 1)
    scenarios = run.worlds._scenarios
    assert scenarios is not None
    pool = scenarios.pool
    numbers, names = pool.marks[TEACHER], list(PAPER.parameters)
    assert {*numbers} == {0.0, 1.0}
    first = 0
    for name in names:
        parameter = PAPER.parameters[name]
        values = pool.parameters[:, first : first + parameter.draws]
        first += parameter.draws
        low, width = parameter.limit.low, parameter.limit.width
        values = low + (values + 1.0) / 2.0 * width
        for number, own in enumerate(levels):
            found = values[numbers == number]
            allowed = parameter.range_at(own.get(name.partition(".")[0], 0.0))
            assert found.min() >= allowed.low - 1e-6
            assert found.max() <= allowed.high + 1e-6
    # And those who are to label know it, step by step.
    shown = run.worlds.observations[TEACHER][:, 0].numpy()
    np.testing.assert_array_equal(shown, numbers[run.worlds.env.rows.numpy()])


def test_labels_are_those_of_the_world_s_own_teacher(tmp_path, teachers):
    def error(order) -> float:
        run = create(taught(order), tmp_path / f"{order[0].name}-first", PAPER)
        run.close()
        proposal = run.curriculum.ask()
        assert proposal is not None
        run.worlds.begin(0, proposal.distribution)
        learner: Any = run.learner.algorithm
        learner.forget()
        with torch.no_grad():
            learner.act(run.worlds.observations)
            obs = learner.ppo.storage.observations[0]
            experts = [load_actor(find_checkpoint(str(t)))[0] for t in teachers]
            mass, com = (expert.mean_step(obs, None)[0] for expert in experts)
        expected = torch.where(obs[TEACHER] == 0.0, mass, com)
        return float((obs[MEAN] - expected).abs().max())

    assert error(teachers) < 1e-5
    assert error(teachers[::-1]) > 1e-3


def test_a_teacher_that_is_still_being_trained_is_refused(tmp_path, teachers):
    mass, com = teachers
    checkpoint = find_checkpoint(str(mass))
    going_on = resume(mass)
    with pytest.raises(
        InputError, match=r"mass is still being trained: wait for its e"
    ):
        create(taught((com, mass)), tmp_path / "run", PAPER)
    assert not (tmp_path / "run").exists()
    create(taught((com, checkpoint)), tmp_path / "other", PAPER).close()
    going_on.close()
    create(taught((com, mass)), tmp_path / "run", PAPER).close()


def test_a_run_called_like_a_shipped_policy_is_not_that_teacher(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    going_on = create(tiny(), Path("core"), PAPER)
    teacher = load_teacher("core", PAPER, TaskCfg(), PPO.num_steps)
    assert teacher.source == "core"
    going_on.close()


def test_teachers_are_charged_everywhere(tmp_path, teachers):
    cost = cost_of(*teachers)
    run = create(taught(teachers), tmp_path / "run", PAPER)
    assert cost > 0 and run.curriculum.state.env_steps == cost
    first: Any = next(iter(run.events()))
    assert first.env_steps == cost + run.learner.steps_per_iteration
    run.close()
    finish(resume(tmp_path / "run"))
    spent = read_run(journal_of(tmp_path / "run")).journal.state.env_steps
    assert spent >= cost + 3 * PHASE_STEPS
    assert measure_costs(read_run(journal_of(tmp_path / "run"))).env_steps == spent
    assert run.progress(cost) is None  # Without a limit.
    run.cfg = replace(run.cfg, steps=cost + 1000)
    assert [run.progress(cost + n) for n in (0, 250, 2000)] == [0.0, 0.25, 1.0]
    record = load_actor(find_checkpoint(str(tmp_path / "run")))[2]
    assert record.counters["env_steps"] == spent
    # A student that teaches has cost what its teachers did.
    found = load_teacher(str(tmp_path / "run"), PAPER, TaskCfg(episode_s=0.16), 5)
    assert found.about.env_steps == spent


def test_a_teacher_costs_what_its_run_spent_after_its_last_commit_too(tmp_path):
    teacher = tmp_path / "teacher"
    entries = finish(create(stormy(max_phases=4), teacher, STORM))
    assert actions(entries)[-1] == "rollback"
    cost, checkpoint = cost_of(teacher), find_checkpoint(str(teacher))
    assert load_actor(checkpoint)[2].counters["env_steps"] < cost
    cfg = replace(taught((teacher,)), groups="disturbance,com")
    run_phases(create(cfg, tmp_path / "run", STORM), 1)
    resumed = resume(tmp_path / "run")  # It finds its teacher by checkpoint.
    resumed.close()
    assert [each.env_steps for each in teachers_of(resumed)] == [cost]
    assert resumed.curriculum.state.env_steps > cost
    # However often it is named, and by what.
    both = replace(cfg, teachers=(*cfg.teachers, str(checkpoint)))
    run = create(both, tmp_path / "both", STORM)
    run.close()
    assert run.curriculum.state.env_steps == cost
    shipped = load_teacher("full-mlp", PAPER, TaskCfg(), PPO.num_steps).about
    assert shipped.env_steps == read_model("full-mlp").env_steps


def test_a_teacher_of_several_domains_is_charged_once(tmp_path, teachers):
    cost, mass = cost_of(*teachers), teachers[0]
    named = taught((f"{mass}@mass=0.2", f"{mass}@mass=0.1", *teachers))
    run = create(replace(named, steps=cost + 1), tmp_path / "run", PAPER)
    run.close()
    assert len(teachers_of(run)) == 4 and run.curriculum.state.env_steps == cost


@OPTIONS
def test_interrupted_run_ends_as_one_that_was_not(tmp_path, teachers, kind, options):
    cfg = taught(teachers, kind, **options)
    if "ppo_from" in options:
        cfg = replace(cfg, steps=cost_of(*teachers) + 3 * PHASE_STEPS)
    whole = create(cfg, tmp_path / "whole", PAPER)
    figures = [e.figures for e in whole.events() if not isinstance(e, Entry)]
    whole.close()
    assert "imitation" in figures[0]
    assert ("surrogate" in figures[-1]) == ("ppo_from" in options)
    run_phases(create(cfg, tmp_path / "parts", PAPER), 1)
    parts = resume(tmp_path / "parts")
    finish(parts)
    assert_same(weights(whole), weights(parts))
    assert journal(tmp_path / "whole") == journal(tmp_path / "parts")
    if "ppo_from" in options:  # It would go back to imitation, at its rate.
        with pytest.raises(InputError, match="is a share of --steps"):
            resume(tmp_path / "parts", steps=0, minutes=1.0)


def test_teacher_that_trains_on_still_teaches_as_it_was(tmp_path, teachers):
    cfg = tiny(groups="mass", max_phases=2, seed=5)
    run_phases(create(cfg, tmp_path / "teacher", PAPER), 1)
    student = taught((tmp_path / "teacher",))
    whole = create(student, tmp_path / "whole", PAPER)
    finish(whole)
    run_phases(create(student, tmp_path / "parts", PAPER), 1)
    finish(resume(tmp_path / "teacher"))
    parts = resume(tmp_path / "parts")
    finish(parts)
    assert_same(weights(whole), weights(parts))


def test_other_weights_in_a_teacher_s_place_are_refused(tmp_path, teachers):
    run_phases(create(taught(teachers), tmp_path / "run", PAPER), 1)
    run = resume(tmp_path / "run")
    run.close()
    pinned = teachers_of(run)
    known = tuple(replace(each, digest="other") for each in pinned)
    check_teachers(run.teachers, pinned)
    with pytest.raises(InputError, match="not the teacher that the run was started"):
        check_teachers(run.teachers, known)


def test_an_oracle_teaches_a_student_that_can_be_deployed(
    tmp_path, capsys, short_exports
):
    actor = replace(ACTORS["mlp"], privileged_groups=("privileged",))
    learner = LearnerCfg(actor=actor, critic=CRITIC, ppo=PPO)
    finish(create(tiny(max_phases=1, learner=learner), tmp_path / "oracle", PAPER))
    student = taught([f"{tmp_path / 'oracle'}@mass=0.3"])
    run = create(student, tmp_path / "student", PAPER)
    assert teachers_of(run)[0].levels == {"mass": 0.3}
    finish(run)
    assert main(["export", str(tmp_path / "student"), str(tmp_path / "out.onnx")]) == 0
    capsys.readouterr()
    assert main(["status", str(tmp_path / "student")]) == 0
    assert "distill" in capsys.readouterr().out


@pytest.mark.parametrize(
    "change, message",
    [
        ({"method": "fixed", "levels": "0.5"}, "--teachers are for distill"),
        ({"teachers": ()}, "needs --teachers"),
        ({"teachers": ("nobody",)}, "no checkpoint 'nobody'"),
        ({"learner": OTHER}, "--learner.algorithm is 'gram'; accepted: ppo"),
        ({"groups": "com"}, "at home in mass, which --groups lacks: .*another teacher"),
        ({"levels": "mass=0.1"}, "at home in mass, which --levels fix"),
        ({"steps": 10}, "env steps, which count: --steps 10 leaves none"),
        ({"task": TaskCfg(episode_s=0.16, action_scale=0.5)}, "action scale of 0.25"),
    ],
)
def test_what_cannot_be_taught_is_refused(tmp_path, teachers, change, message):
    cfg = replace(taught(teachers), **change)
    with pytest.raises(InputError, match=message):
        create(cfg, tmp_path / "run", PAPER)
    assert not (tmp_path / "run").exists()


def test_bad_domains_and_shares_are_refused(tmp_path, teachers):
    for text in ("mass=2", "wind=0.5", "mass=wide"):
        with pytest.raises(InputError, match=f"teacher {teachers[0]}: "):
            create(taught([f"{teachers[0]}@{text}"]), tmp_path / "run", PAPER)
    with pytest.raises(InputError, match="is a share of --steps"):
        create(taught(teachers, ppo_from=0.5), tmp_path / "run", PAPER)
    with pytest.raises(InputError, match="ppo_from"):
        DistillCfg(ppo_from=1.5)


def test_mixture_draws_every_domain_alike_and_repeats():
    mixture = OneOf(({"mass": 1.0}, {"com": 0.5}, {}))
    drawn = mixture.sample(PAPER, 3000, np.random.default_rng(0))
    shares = np.bincount(drawn[TEACHER].astype(int)) / 3000
    assert np.abs(shares - 1 / 3).max() < 0.03
    fewer = mixture.sample(PAPER, 10, np.random.default_rng(0))
    for name, values in fewer.items():
        np.testing.assert_array_equal(values, drawn[name][:10])
    levels, marks = mixture.sample_levels(100, np.random.default_rng(0))
    np.testing.assert_array_equal(levels["com"], 0.5 * (marks[TEACHER] == 1.0))
    assert decode(OneOf, encode(mixture)) == mixture
    with pytest.raises(InputError, match="no domains"):
        OneOf(())


def test_method_is_known_by_its_name_and_says_what_it_does():
    mass = Teacher(name="a", levels={"mass": 0.5}, env_steps=10_000_000, digest="x")
    other = replace(mass, name="b", levels={}, digest="y")
    method = Distill(teachers=(mass, other))
    assert method.describe() == (
        "Teachers: a: mass 0.5; b: baseline. Their 20.00 M env steps are charged"
    )
    state = method.start(("mass", "com"))
    assert state.env_steps == 20_000_000 and state.proposal
    assert state.proposal.levels == {"mass": 0.5, "com": 0.0}
    assert state.proposal.band_of("mass") == (0.0, 0.5)
    assert decode(Distill, encode(method)) == method
