"""How many threads are taken where nobody says."""

import os
from pathlib import Path

import pytest

from horizon_rl.support.cores import default_threads


@pytest.mark.parametrize("asked, taken", [("3", 3), ("4,2", 4), (" 2 ", 2)])
def test_openmp_s_variable_decides(monkeypatch, asked, taken):
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert default_threads() == taken


@pytest.mark.parametrize("asked", ["", "0", "many"])
def test_else_it_is_one_per_core(monkeypatch, asked):
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5, 7}, raising=False)
    assert default_threads() == 3, "of those that the process is kept to"
    monkeypatch.delattr(os, "sched_getaffinity")
    assert default_threads() == 64


def test_grid_takes_a_worker_per_core_where_cores_cannot_be_chosen(monkeypatch):
    pytest.importorskip("torch")
    from horizon_rl.cli.grid_flags import GridCmd
    from horizon_rl.cli.grid_plan import num_workers

    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert num_workers(GridCmd(study=Path("study.toml"), cpus=4)) == 16
