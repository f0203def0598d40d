"""The catalogue `extended`: more groups, and the paper's as they were."""

import hashlib

import numpy as np
import pytest

from horizon_rl.domains import (
    CORE_GROUPS,
    Range,
    load_catalogue,
    paper_catalogue,
    parse_catalogue,
    sample,
    shipped_catalogue,
)
from horizon_rl.domains.catalogue import OPTIONAL_GROUPS
from horizon_rl.support.errors import InputError

EXTENDED = shipped_catalogue("extended")


def test_it_adds_groups_and_changes_none():
    paper = paper_catalogue()
    assert EXTENDED.groups[:7] == paper.groups
    assert EXTENDED.names[7:] == OPTIONAL_GROUPS
    named = {"latency", "sensing", "drivetrain", "damage", "terrain"}
    assert set(OPTIONAL_GROUPS) == named


def test_draws_from_the_paper_s_catalogue_never_change():
    paper = paper_catalogue()
    drawn = sample(paper, paper.ranges({"mass": 0.5}), 8, np.random.default_rng(0))
    digest = hashlib.sha256()
    for name, values in drawn.items():
        digest.update(name.encode() + np.ascontiguousarray(values, "<f8").tobytes())
    assert digest.hexdigest()[:16] == "c069d967c68f1eaa"


def test_level_0_is_the_world_without_these_groups():
    ranges = EXTENDED.ranges({})
    ones = ("sensing.noise_scale", "damage.leg_mass", "damage.stuck_at")
    # Which joints are faulty, and what ground, is a choice; at level 0 all are alike.
    choices = ("damage.faulty_joints", "terrain.choice")
    for name in EXTENDED.parameters:
        if name.partition(".")[0] in OPTIONAL_GROUPS and name not in choices:
            value = float(name in ones)
            assert ranges[name] == Range(value, value), name


def test_level_1_is_the_limit():
    ranges = EXTENDED.ranges({"latency": 1.0, "sensing": 0.5})
    assert ranges["latency.action_delay"] == Range(0.0, 0.06)
    assert ranges["sensing.noise_scale"] == Range(0.75, 2.0)


def test_groups_are_named_beside_the_core():
    assert EXTENDED.select("core,latency,sensing") == (
        *CORE_GROUPS,
        "latency",
        "sensing",
    )
    assert EXTENDED.select("latency, core") == ("latency", *CORE_GROUPS)
    assert EXTENDED.select("full") == EXTENDED.names
    with pytest.raises(InputError, match="unknown group 'sensng'.*'sensing'"):
        EXTENDED.select("core,sensng")


def test_it_is_loaded_by_name_and_can_be_extended(tmp_path):
    assert load_catalogue("extended") is EXTENDED
    file = tmp_path / "mine.toml"
    file.write_text(
        'extends = "extended"\n[groups.latency.parameters.action_delay]\n'
        "limit = [0.0, 0.1]\n"
    )
    mine = load_catalogue(file)
    assert mine.parameters["latency.action_delay"].limit == Range(0.0, 0.1)
    assert mine.names == EXTENDED.names


def test_who_asks_the_paper_s_catalogue_for_one_is_told_where_it_is():
    with pytest.raises(InputError, match="'latency'.*'extended' has it"):
        paper_catalogue().select("core,latency")


def test_a_name_that_is_none_says_what_would_do():
    with pytest.raises(InputError, match="extendet.*Accepted: paper, extended, or a"):
        load_catalogue("extendet")


def test_an_effect_is_looked_for_beside_the_file(tmp_path):
    text = "[groups.a.parameters.b]\nbaseline = [0, 0]\nlimit = [0, 1]\neffect = {}\n"
    source = str(tmp_path / "mine.toml")
    (parameter,) = parse_catalogue(
        text.format('"code.py:act"'), source
    ).parameters.values()
    assert parameter.effect == f"{tmp_path / 'code.py'}:act"
    (parameter,) = parse_catalogue(
        text.format('"pack.mod:act"'), source
    ).parameters.values()
    assert parameter.effect == "pack.mod:act"
