"""Recorded work where there is nothing to record on."""

import pytest

pytest.importorskip("torch")

import torch

from horizon_rl.support.graphs import Recorded, compiled, is_on


@pytest.mark.parametrize("switch", [None, "0", "1"])
def test_on_a_cpu_recorded_work_is_done_at_every_call(monkeypatch, switch):
    if switch is not None:
        monkeypatch.setenv("HORIZON_GRAPHS", switch)
    counter = torch.zeros(())
    work = Recorded(lambda: counter.add_(1.0), "cpu")
    for _ in range(5):
        work()
    assert counter == 5.0


def test_nothing_is_done_before_the_first_call():
    calls = []
    Recorded(lambda: calls.append(1), "cpu")
    assert not calls


def test_on_a_cpu_nothing_is_compiled(monkeypatch):
    monkeypatch.setenv("HORIZON_COMPILE", "1")
    assert compiled(len, "cpu", "task") is len


def test_function_that_does_not_compile_is_called_as_it_is(monkeypatch):
    def refuse(function):
        def fail(*args):
            raise RuntimeError("no compiler")

        return fail

    monkeypatch.setenv("HORIZON_COMPILE", "task")
    monkeypatch.setattr(torch, "compile", refuse)
    assert compiled(len, "cuda", "update") is len
    length = compiled(len, "cuda", "task")
    with pytest.warns(UserWarning, match="is not compiled: no compiler"):
        assert length("four") == 4
    assert length("three") == 5


def test_switches_are_1_or_0(monkeypatch):
    monkeypatch.delenv("HORIZON_GRAPHS", raising=False)
    assert is_on("HORIZON_GRAPHS") and not is_on("HORIZON_GRAPHS", default=False)
    monkeypatch.setenv("HORIZON_GRAPHS", "0")
    assert not is_on("HORIZON_GRAPHS")
    monkeypatch.setenv("HORIZON_GRAPHS", "1")
    assert is_on("HORIZON_GRAPHS", default=False)
