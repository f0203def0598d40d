"""Results of evaluations beside runs, and curves of success against cost."""

import json
from pathlib import Path

import pytest

pytest.importorskip("scipy")

from studied_runs import make_run

from horizon_rl.evaluation.success import (
    CurvePoint,
    Result,
    make_curves,
    match_results,
    read_curve,
    read_results,
)
from horizon_rl.support.errors import InputError


def results(*pairs: tuple[str, float]) -> list[Result]:
    return [Result(p, s, "a") for p, s in pairs]


def test_results_go_to_runs_by_name_in_order_and_by_path():
    runs = [make_run(seed=s) for s in (0, 1)] + [make_run(name="wide")]
    given = results(("wide-3/checkpoints/x", 0.1), ("horizon", 0.3), ("horizon", 0.4))
    found = match_results([*given, *results(("stranger", 0.9))], runs)
    assert found == {
        Path("horizon-0"): 0.3,
        Path("horizon-1"): 0.4,
        Path("wide-3"): 0.1,
    }


def test_results_that_fit_no_run_are_refused():
    runs = [make_run(seed=s) for s in (0, 1)]
    with pytest.raises(InputError, match=r"horizon-0, horizon-1: 1 result\(s\)"):
        match_results(results(("horizon", 0.3)), runs)
    with pytest.raises(InputError, match="did you mean 'horizon'"):
        match_results(results(("horizn", 0.3)), runs)
    other = Result("horizon", 0.1, "b")
    with pytest.raises(InputError, match="different suites"):
        match_results([*results(("horizon", 0.3)), other], runs)
    two = results(("horizon-0/checkpoints/a", 0.3), ("horizon-0/checkpoints/b", 0.4))
    with pytest.raises(InputError, match=r"horizon-0: 2 result\(s\)"):
        match_results(two, runs)


def test_results_file_gives_column_all_at_severity_half(tmp_path):
    def result(severity, success):
        suite = {"name": "ood", "hash": "a", "severity": severity}
        columns = {"all": {"success": success}, "mass": {"success": 0.9}}
        return {"policy": "horizon", "suite": suite, "columns": columns}

    file = tmp_path / "results.json"
    file.write_text(json.dumps([result(0.5, 0.25), result(1.0, 0.1)]))
    assert [(r.policy, r.success) for r in read_results(file)] == [("horizon", 0.25)]
    assert read_results(file)[0].measure == "ood 0.5, all"
    assert read_results(file, "mine")[0].policy == "mine"
    file.write_text(json.dumps(result(1.0, 0.1)))
    with pytest.raises(InputError, match="--severity 0.5"):
        read_results(file)


def test_area_of_the_curve_is_taken_where_there_is_one(tmp_path):
    suite = {"name": "curve", "draw": "test", "hash": "c", "severity": None}
    curve = {"all": {"area": 0.4}, "core": {"area": 0.6}}
    columns = {"all@0.5": {"success": 0.9}}
    one = {"policy": "horizon", "suite": suite, "columns": columns, "curve": curve}
    old = {"name": "ood", "hash": "a", "severity": 0.5}
    half = {"policy": "wide", "suite": old, "columns": {"all": {"success": 0.2}}}
    file = tmp_path / "results.json"
    file.write_text(json.dumps([half, one]))
    assert read_results(file) == [Result("horizon", 0.4, "c", "area of all")]


def test_curves_are_compared_at_the_cost_all_reached():
    points = [
        *(CurvePoint("a", 0, x, s) for x, s in ((100, 0.1), (400, 0.4))),
        *(CurvePoint("a", 1, x, s) for x, s in ((100, 0.3), (500, 0.7))),
        *(CurvePoint("b", 0, x, s) for x, s in ((150, 0.0), (450, 0.3))),
    ]
    a, b = make_curves(points)
    spread = a.at_cost["0.5"]  # At 200 of 400.
    assert spread is not None and spread.mean == pytest.approx((0.2 + 0.4) / 2)
    assert a.at_cost["0.25"] is not None
    assert b.at_cost["0.25"] is None  # At 100: before its first checkpoint.
    with pytest.raises(InputError, match="two successes of seed 0"):
        make_curves([*points, CurvePoint("b", 0, 150, 0.1)])


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ({}, "not a list of rows"),
        ([{"method": "a", "seed": 0, "env_steps": 1}], "row 0: needs method, seed"),
        (
            [{"method": "a", "seed": 0, "env_steps": 1, "success": 31}],
            "success in 0..1",
        ),
    ],
)
def test_bad_rows_of_a_curve_are_refused(tmp_path, rows, complaint):
    file = tmp_path / "curve.json"
    file.write_text(json.dumps(rows))
    with pytest.raises(InputError, match=complaint):
        read_curve(file)
