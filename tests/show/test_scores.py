"""Evaluations are put beside each other only where they met the same scenarios."""

import json
from typing import Any

import pytest

from horizon_rl.show.scores import (
    collect,
    read_records,
    score_suite,
    suite_table,
    tracking_table,
)
from horizon_rl.show.table import Cell
from horizon_rl.support.errors import InputError


def record(policy="a", success=0.5, digest="one", **column):
    found = {"success": success, "episodes": 100, "stand": 0.1, **column}
    return {
        "policy": policy,
        "suite": {"name": "ood", "hash": digest, "severity": 0.5},
        "columns": {"all": found},
    }


def test_seeds_of_one_policy_go_into_one_cell():
    (scores,) = collect([record(success=0.4), record(success=0.6), record("b", 0.9)])
    ((_, ours, theirs, stand),) = suite_table(scores).rows
    assert (ours, theirs) == ("50.0 ± 14.1", "90.0")
    assert stand == Cell("10.0", "dim")


def test_interval_stands_beside_one_checkpoint_where_there_is_room():
    scores = score_suite([record(interval={"low": 0.4, "high": 0.6})])
    for intervals, shown in ((True, "50.0 (40..60)"), (False, "50.0")):
        assert suite_table(scores, intervals=intervals).rows[0][1] == shown


def test_what_success_hides_stands_beside_it_where_it_is_known():
    known: dict[str, Any] = {"close": 0.25, "length": 0.98, "tracking_error": 0.1234}
    scores = score_suite([record(**known), record(close=0.75), record("old")])
    table = tracking_table(scores)
    assert table.title == "Beside success, in ood (dev) at severity 0.5, suite one"
    assert table.rows == (("all", "50.0 / 98 / 0.123", "- / - / -"),)


def test_different_suites_make_different_tables():
    assert len(collect([record(), record(digest="two")])) == 2


def test_same_result_by_two_ways_is_not_two_seeds():
    (scores,) = collect([record(), record()])
    assert len(scores.policies["a"]) == 1


def test_others_stand_beside_ours_but_make_no_table():
    (scores,) = collect([record()], [record("base"), record("base", digest="two")])
    assert list(scores.policies) == ["a", "base"]


def test_floor_is_taken_from_the_most_scenarios():
    (scores,) = collect([record(), record("b", episodes=1000, stand=0.2)])
    assert scores.about("all", "stand") == 0.2


@pytest.mark.parametrize(
    "data",
    [
        [],
        {},
        3,
        [1],
        {"policy": "a"},
        {**record(), "suite": None},
        {**record(), "suite": {"name": "ood", "hash": "x", "severity": "high"}},
        {**record(), "columns": {}},
        {**record(), "columns": {"all": {"success": "often"}}},
        {**record(), "columns": {"all": {"success": 1.5}}},
        {**record(), "columns": {"all": 3}},
        *(
            {**record(), "columns": {"all": {"success": 0.5, **wrong}}}
            for wrong in (
                {"interval": [0.1, 0.2]},
                {"interval": {"low": 0.1}},
                {"interval": {"low": 0.1, "high": None}},
                {"interval": {"low": 0.1, "high": 0.2, "x": 0.3}},
                {"tracking_error": [0.1]},
                {"length": 1e308},
                {"episodes": "many"},
                {"stand": {}},
            )
        ),
    ],
)
def test_what_is_no_result_is_refused_by_the_files_name(tmp_path, data):
    file = tmp_path / "x.json"
    file.write_text(json.dumps(data))
    with pytest.raises(InputError, match=r"x\.json: not results; accepted: what `hor"):
        read_records(file)


def test_name_given_is_that_of_all_policies_in_the_file(tmp_path):
    file = tmp_path / "x.json"
    file.write_text(json.dumps([record(), record("b")]))
    assert [r["policy"] for r in read_records(file, "mine")] == ["mine", "mine"]
