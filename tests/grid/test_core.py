"""The pairwise search on records made by hand."""

from itertools import combinations
from typing import Any

import pytest

pytest.importorskip("scipy")
from horizon_rl.cli import main
from horizon_rl.grid.core import search_core, select_core
from horizon_rl.show.core_tables import core_tables
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import dumps

NAMES = ("a", "b", "c")


def record(groups, seed, success, coverage, severity=0.5, **changes) -> dict[str, Any]:
    """A run of groups, with success by column and coverage by group, in %."""
    columns = {k: {"success": v / 100, "episodes": 64} for k, v in success.items()}
    evaluation = {
        "mark": None,
        "env_steps": 100,
        "policy": "horizon",
        "suite": {"name": "ood", "severity": severity, "draw": "dev", "hash": "x"},
        "columns": columns,
    }
    return {
        "run": f"horizon_{'+'.join(groups)}_s{seed}",
        "cell": f"horizon_{'+'.join(groups)}",
        "method": "horizon",
        "setting": "",
        "groups": list(groups),
        "seed": seed,
        "finished": True,
        **dict.fromkeys(("phases", "env_steps", "lost_env_steps"), 100),
        "frontier_phases": [],
        "left_out": {},
        "coverage": {k: v / 100 for k, v in coverage.items()},
        "evaluations": [evaluation],
        **changes,
    }


def search_records(seed: int = 0, shift: float = 0.0) -> list[dict[str, Any]]:
    """Experts: 60 % and coverage 30. With b, a gains; with c, nobody does."""
    experts = [record([g], seed, {g: 60 + shift}, {g: 30}) for g in NAMES]
    pairs = [
        record("ab", seed, {"a": 70, "b": 62, "a+b": 50}, {"a": 40, "b": 26}),
        record("ac", seed, {"a": 50, "c": 60, "a+c": 40}, {"a": 30, "c": 30}),
        record("bc", seed, {"b": 58, "c": 62, "b+c": 45}, {"b": 29, "c": 30}),
    ]
    full = record(NAMES, seed, {"a": 80, "b": 89, "c": 88}, dict.fromkeys(NAMES, 20))
    return [*experts, *pairs, full]


def test_f_and_o_are_means_over_the_two_groups_in_points():
    pairs = {p.groups: p for p in search_core(search_records()).pairs}
    ab = pairs["a", "b"]
    assert ab.success.mean == pytest.approx(0.5)
    # Coverage: a 40 - 30, b 26 - 30. Success: a 70 - 60, b 62 - 60.
    assert ab.frontier_change.mean == pytest.approx((10 - 4) / 2)
    assert ab.transfer.mean == pytest.approx((10 + 2) / 2)
    assert ab.gain == pytest.approx(9.0)
    assert pairs["a", "c"].gain == pytest.approx(-5.0)
    assert pairs["b", "c"].gain == pytest.approx(-0.5)


def test_a_run_of_the_core_that_goes_on_asks_for_no_other_seed():
    names = (*NAMES, "d")
    full = dict.fromkeys(names, 80)
    runs = [
        record(chosen, 0, {**full, "+".join(chosen): 50}, full)
        for k in (1, 2, 4)
        for chosen in combinations(names, k)
    ]
    core = record("abc", 7, full, full, finished=False)
    assert search_core([*runs, core]).seeds == (0,)


def test_the_core_are_hard_groups_that_gain_from_a_partner():
    found = search_core(search_records())
    assert found.core == ("a", "b")
    a, b, c = found.groups
    assert a.is_hard and b.is_hard and c.is_hard
    assert (a.partner, a.gain) == ("b", pytest.approx(9.0))
    assert (c.partner, c.is_core) == ("b", False)


def test_an_easy_group_is_not_in_the_core_whatever_it_gains():
    records = search_records()
    records[-1]["evaluations"][0]["columns"]["b"]["success"] = 0.9
    assert search_core(records).core == ("a",)


@pytest.mark.parametrize(
    ("full", "gains", "core"),
    [
        ({"a": 0.5, "b": 0.5}, {("a", "b"): 0.1}, ("a", "b")),
        ({"a": 0.5, "b": 0.95}, {("a", "b"): 0.1}, ("a",)),
        ({"a": 0.5, "b": 0.5}, {("a", "b"): 0.0}, ()),
        ({"a": 0.9, "b": 0.9}, {("a", "b"): 9.0}, ()),
    ],
)
def test_rule(full, gains, core):
    assert select_core(full, gains) == core


def test_the_papers_full_row_makes_its_four_groups_hard():
    row = {
        "actuation": 0.634, "mass": 0.873, "disturbance": 0.629, "reset": 0.99,
        "contact": 0.985, "inertia": 0.978, "com": 0.69,
    }  # fmt: skip
    gains = {pair: 1.0 for pair in combinations(row, 2)}
    assert set(select_core(row, gains)) == {"actuation", "mass", "disturbance", "com"}


def test_seeds_are_the_unit():
    found = search_core([*search_records(0), *search_records(1, shift=4.0)])
    ab = found.pairs[0]
    assert found.seeds == (0, 1)
    # The second seed's experts are 4 points better.
    assert ab.transfer.mean == pytest.approx((6.0 + 2.0) / 2)
    assert ab.transfer.sd == pytest.approx(8.0**0.5)
    assert ab.frontier_change.sd == pytest.approx(0.0)


def test_coverage_is_compared_with_the_full_runs_and_the_cores():
    records = [*search_records(0), *search_records(1)]
    records[-1]["coverage"]["a"] = 0.3
    a, _, c = search_core(records).groups
    means = a.expert_coverage.mean, a.full_coverage.mean, a.core_coverage
    assert means[:2] == (pytest.approx(0.3), pytest.approx(0.25))
    # The core is the pair a, b, whose run has 40 in a; c is not in it.
    assert means[2] and means[2].mean == pytest.approx(0.4) and c.core_coverage is None
    records[-1]["evaluations"][0]["columns"]["c"]["success"] = 0.1
    for record in records:  # Now all three are selected: it is the full run.
        if record["groups"] == ["b", "c"]:
            record["coverage"]["b"] = 0.4
    found = search_core(records)
    assert found.core == ("a", "b", "c")
    assert "No finished run" not in str(core_tables(found))
    assert all(g.core_coverage == g.full_coverage for g in found.groups)


def test_a_search_does_without_the_run_of_the_core():
    wide = (*NAMES, "d")
    experts = [record([g], 0, {g: 60}, {g: 30}) for g in wide]
    pairs = [
        record(p, 0, {p[0]: 70, p[1]: 62, "+".join(p): 50}, dict.fromkeys(p, 40))
        for p in combinations(wide, 2)
    ]
    success = {"a": 80, "b": 80, "c": 80, "d": 95}
    full = record(wide, 0, success, dict.fromkeys(wide, 20))
    core = record(NAMES, 0, {}, dict.fromkeys(NAMES, 35), finished=False)
    found = search_core([*experts, *pairs, full, core])
    assert found.core == NAMES and found.groups[0].core_coverage is None
    missing = "No finished run of the selected groups with every seed."
    assert missing in core_tables(found)[0].notes
    core["finished"] = True
    found = search_core([*experts, *pairs, full, core])
    assert missing not in core_tables(found)[0].notes
    assert [g.core_coverage is None for g in found.groups] == [False] * 3 + [True]


def test_the_last_checkpoint_that_was_evaluated_counts():
    records = search_records()
    early = {**records[0]["evaluations"][0], "env_steps": 50}
    early["columns"] = {"a": {"success": 0.99, "episodes": 64}}
    records[0]["evaluations"].append(early)
    assert search_core(records) == search_core(search_records())


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda r: r.pop(0), "missing: a seed 0"),
        (lambda r: r.pop(-2), "missing: b.c seed 0"),
        (lambda r: r.append(record("a", 1, {}, {})), "missing: a.b.c seed 1|b seed 1"),
        (lambda r: r[0]["evaluations"].clear(), "was not evaluated in column a of ood"),
        (lambda r: r[2].update(finished=False), "study asks: horizon_c_s0. The comm"),
    ],
)
def test_what_is_missing_is_named(change, complaint):
    records = search_records()
    change(records)
    with pytest.raises(InputError, match=complaint):
        search_core(records)


def test_other_severities_do_not_count():
    with pytest.raises(InputError, match="at severity 1, draw dev"):
        search_core(search_records(), severity=1.0)
    with pytest.raises(InputError, match="draw test"):
        search_core(search_records(), draw="test")
    with pytest.raises(InputError, match="column a.b of compositions"):
        search_core(search_records(), suite="compositions")


def evaluate_twice(success: float, suite: str = "ood") -> list[dict[str, Any]]:
    """Evaluate the expert of a once more at its end."""
    records = search_records()
    first = records[0]["evaluations"][0]
    again = {**first, "suite": {**first["suite"], "name": suite}}
    again["columns"] = {"a": {"success": success, "episodes": 64}}
    records[0]["evaluations"].append(again)
    return records


def test_two_evaluations_that_differ_are_refused():
    with pytest.raises(InputError, match="horizon_a_s0 was evaluated 2 times in colu"):
        search_core(evaluate_twice(0.7))
    expected = search_core(search_records())
    assert search_core(evaluate_twice(0.6)) == expected
    assert search_core(evaluate_twice(0.7, suite="compositions")) == expected


def test_command_selects_and_draws(tmp_path, capsys):
    file = tmp_path / "records.jsonl"
    file.write_text("".join(dumps(r) + "\n" for r in search_records()))
    figures = tmp_path / "figures"
    assert main(["core", str(file), "--figures", str(figures), "--markdown"]) == 0
    out = capsys.readouterr().out
    assert "Selected: a, b." in out
    assert "| a + b | 50.0 | +3.0 | +6.0 | +9.0 |" in out
    svg = (figures / "core.svg").read_text()
    assert "O +6.0" in svg and (figures / "core.png").stat().st_size > 1000
    reach = (figures / "reach.svg").read_text()
    assert "core run" in reach and (figures / "reach.png").stat().st_size > 1000


def test_command_names_the_cells_that_there_are(tmp_path, capsys):
    file = tmp_path / "records.jsonl"
    file.write_text("".join(dumps(r) + "\n" for r in search_records()))
    assert main(["core", str(file), "--cell", "paper"]) == 2
    assert "unknown cell 'paper'. Accepted: horizon" in capsys.readouterr().err
    assert main(["core", str(tmp_path / "none.jsonl")]) == 2
    assert "cannot read records" in capsys.readouterr().err
    file.write_text('{"a": 1}\n')
    assert main(["core", str(file)]) == 2
    assert "not records" in capsys.readouterr().err
