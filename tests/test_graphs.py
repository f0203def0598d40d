"""Recorded work where there is nothing to record on."""

import pytest

pytest.importorskip("torch")

import torch

from horizon_rl.support.graphs import Recorded, compiled, set_matmul_precision


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


def test_on_a_cpu_nothing_is_compiled():
    assert compiled(len, "cpu", wanted=True) is len


def test_on_a_gpu_it_is_compiled_only_where_wanted(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function: "compiled")
    assert compiled(len, "cuda", wanted=False) is len
    assert compiled(len, "cuda", wanted=True) == "compiled"


@pytest.mark.parametrize(
    ("switch", "records"), [(None, True), ("1", True), ("0", False), ("", False)]
)
def test_recording_on_a_gpu_can_be_switched_off(monkeypatch, switch, records):
    monkeypatch.delenv("HORIZON_GRAPHS", raising=False)
    if switch is not None:
        monkeypatch.setenv("HORIZON_GRAPHS", switch)
    assert Recorded(list, "cuda")._records is records


@pytest.mark.parametrize(
    ("device", "precision", "calls"),
    [
        ("cuda:0", "tf32", ["high"]),
        ("cuda", "float32", ["highest"]),
        ("cpu", "tf32", []),
    ],
)
def test_only_a_gpu_multiplies_with_another_precision(
    monkeypatch, device, precision, calls
):
    found: list[str] = []
    monkeypatch.setattr(torch, "set_float32_matmul_precision", found.append)
    set_matmul_precision(device, precision)
    assert found == calls
