"""Budgets: what is spent, and which was last given."""

import pytest

from horizon_rl.runs.budget import Budget, read_budget, write_budget


def test_without_limits_nothing_is_ever_spent():
    assert Budget().spent(10**12, 1e12) is None
    assert Budget().share(10**12, 1e12) is None


def test_limit_is_spent_when_it_is_reached():
    budget = Budget(steps=100, minutes=2.0)
    assert budget.spent(99, 119.9) is None
    assert budget.spent(100, 0.0) == "budget of 100 env steps spent"
    assert budget.spent(0, 120.0) == "budget of 2 minutes spent"


def test_share_is_the_larger_one():
    budget = Budget(steps=100, minutes=2.0)
    assert budget.share(50, 30.0) == 0.5
    assert budget.share(10, 30.0) == 0.25
    assert Budget(minutes=1.0).share(10**9, 30.0) == 0.5


def test_budget_is_remembered_once_it_is_given(tmp_path):
    assert read_budget(tmp_path) is None
    write_budget(tmp_path, Budget(minutes=0.5))
    assert read_budget(tmp_path) == Budget(minutes=0.5)


def test_budget_without_a_checksum_is_read_only_beside_an_old_journal(tmp_path):
    (tmp_path / "budget.json").write_text('{"steps": 5, "minutes": 0.0}')
    (tmp_path / "journal.jsonl").write_text('{"schema": 3}\n')
    assert read_budget(tmp_path) == Budget(steps=5)
    (tmp_path / "journal.jsonl").write_text('{"schema": 4}\n')
    with pytest.warns(UserWarning, match="budget.json is damaged"):
        assert read_budget(tmp_path) is None
