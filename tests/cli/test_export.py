"""`horizon export`, as a user reads what it says."""

import re

import pytest

pytest.importorskip("torch")
pytest.importorskip("onnxruntime")

from horizon_rl.cli import main


def test_torque_of_training_is_scaled_to_the_robot(tmp_path, capsys, short_exports):
    path = tmp_path / "b1.onnx"
    assert main(["export", "core-mlp", str(path), "--robot", "b1"]) == 0
    out, err = capsys.readouterr()
    # The file's limits are 40 N m times this; training went down to 30.5 N m on Go2.
    found = re.search(
        r"limits are up to ([\d.]+) N m where b1's own motors have 91", err
    )
    assert found and float(found[1]) == pytest.approx(241, abs=1.0)
    trained = re.search(r"scaled to b1, had ([\d.]+) N m and more", err)
    assert trained and float(trained[1]) == pytest.approx(241 / 40 * 30.5, abs=1.5)
    assert f"next     horizon eval {path} --robot b1 --episodes 64" in out


def test_motors_weaker_than_in_training_are_said_in_a_line(
    tmp_path, capsys, short_exports
):
    path = tmp_path / "p.onnx"
    assert main(["export", "core-quiet", str(path), "--motors", "own"]) == 0
    out, err = capsys.readouterr()
    said = re.findall(r"^torque   .*$", out, re.M)
    assert said == [
        "torque   smallest limit 23.7 N m; training, scaled to go2, went down to 24.8 N m "
        "only"
    ]
    assert err == ""
    assert main(["export", "base-mlp", str(path)]) == 0
    assert "torque  " not in capsys.readouterr().out, "as in training"
