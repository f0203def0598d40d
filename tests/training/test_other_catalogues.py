"""Runs on catalogues other than the paper's: resumed, started from its policies."""

import pytest
import torch
from small_runs import (
    assert_same,
    create,
    finish,
    journal,
    levels,
    resume,
    run_phases,
    tiny,
    weights,
)

from horizon_rl.domains import paper_catalogue, parse_catalogue, shipped_catalogue
from horizon_rl.domains.catalogue import OPTIONAL_GROUPS
from horizon_rl.learning.checkpoint import load_checkpoint
from horizon_rl.physics import privileged_numbers
from horizon_rl.robots import FLAT, TERRAIN
from horizon_rl.support.errors import InputError
from horizon_rl.training.transfer import CONTEXT, fit_catalogue
from horizon_rl.training.worlds import SimulatedWorlds

ENCODER = "critic.encoder.0.weight"

PAPER, EXTENDED = paper_catalogue(), shipped_catalogue("extended")
ADDED = sum(p.draws for p in EXTENDED.parameters.values()) - 46
"""Numbers that the critic is told beyond the paper's 46 draws."""


def signals(path, **options):
    cfg = tiny(groups="latency,sensing", max_phases=5, min_step=0.5)
    return create(cfg, path, EXTENDED, **options)


def test_late_and_ill_sensed_runs_are_resumed_to_the_bit(tmp_path):
    whole, cut = signals(tmp_path / "whole"), signals(tmp_path / "cut")
    entries = finish(whole)
    assert {"latency": 0.5, "sensing": 0.5} in levels(entries), "it widens both"
    run_phases(cut, 3)
    resumed = resume(cut.path)
    assert resumed.catalogue == EXTENDED
    finish(resumed)
    assert_same(weights(resumed), weights(whole))
    assert journal(cut.path) == journal(whole.path)


def test_a_policy_of_the_paper_s_catalogue_starts_where_it_was(tmp_path):
    before = create(tiny(), tmp_path / "before", PAPER)
    finish(before)
    after = signals(tmp_path / "after", init=before.checkpoint)
    after.close()
    old, new = weights(before), weights(after)
    for name, value in new.items():
        if name.startswith("actor."):
            assert torch.equal(value, old[name]), name
    # Five numbers of the body, 46 draws of the paper, then what is not yet known.
    assert new[ENCODER].shape[1] == old[ENCODER].shape[1] + ADDED == 51 + ADDED
    assert torch.equal(new[ENCODER][:, :51], old[ENCODER])
    assert not new[ENCODER][:, 51:].any()
    moments = f"adam.{ENCODER}.exp_avg"
    assert torch.equal(new[moments][:, :51], old[moments]) and old[moments].any()


def test_every_group_beyond_the_paper_s_trains_and_its_critic_learns_of_it(tmp_path):
    before = create(tiny(), tmp_path / "before", PAPER)
    finish(before)
    phases = 1 + len(OPTIONAL_GROUPS)
    cfg = tiny(groups=",".join(OPTIONAL_GROUPS), max_phases=phases, min_step=0.5)
    run = create(cfg, tmp_path / "run", EXTENDED, init=before.checkpoint)
    assert dict.fromkeys(OPTIONAL_GROUPS, 0.5) in levels(finish(run))
    # The numbers began without any weight: a draw that varies has earned some.
    learnt = weights(run)[ENCODER].abs().amax(dim=0)
    for column, (name, _) in enumerate(privileged_numbers(EXTENDED)):
        if name.partition(".")[0] in OPTIONAL_GROUPS:
            assert learnt[column] > 0.0, f"the critic does not see {name}"


def catalogue_of(**draws: int):
    return parse_catalogue(
        "".join(
            f"[groups.g.parameters.{n}]\nbaseline=[0,0]\nlimit=[0,1]\ndraws={d}\n"
            for n, d in draws.items()
        )
    )


def test_weights_follow_their_parameters_by_name():
    catalogues = catalogue_of(a=1, b=2), catalogue_of(b=3, c=1, a=1)
    old = torch.arange(1.0, 9.0).expand(2, 8)  # Five of the body, a, b0, b1.
    fitted = fit_catalogue({ENCODER: old, "critic.x": old}, *catalogues)
    expected = [1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 8.0, 0.0, 0.0, 6.0]
    assert fitted[ENCODER].tolist() == [expected, expected]
    assert torch.equal(fitted["critic.x"], old)
    assert torch.equal(fit_catalogue({ENCODER: old}, *catalogues[:1] * 2)[ENCODER], old)


def test_a_context_of_as_many_other_parameters_is_refused():
    tensors = {CONTEXT: torch.zeros(2, 8)}
    mine = catalogue_of(a=1, b=2)
    assert fit_catalogue(tensors, mine, mine) == tensors
    with pytest.raises(InputError, match="the parameters of another catalogue"):
        fit_catalogue(tensors, mine, catalogue_of(b=2, a=1))


def test_a_checkpoint_says_which_catalogue_it_knows(tmp_path):
    run = signals(tmp_path / "run")
    run_phases(run, 1)
    groups = load_checkpoint(run.checkpoint).record.catalogue["groups"]
    assert [group["name"] for group in groups] == list(EXTENDED.names)


def test_a_run_that_does_not_widen_terrain_trains_on_the_plane():
    def ground(**settings):
        return SimulatedWorlds(tiny(**settings), EXTENDED, "cpu").robots[0].ground

    assert ground(groups="latency") is FLAT
    assert ground(groups="latency,terrain") is TERRAIN
    assert ground(groups="latency", levels="terrain=0.5") is TERRAIN
    assert ground(groups="full", levels="terrain=0") is FLAT
