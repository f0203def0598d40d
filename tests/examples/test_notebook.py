"""The notebook of the examples, cell by cell."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mujoco")
matplotlib = pytest.importorskip("matplotlib")

NOTEBOOK = Path(__file__).parents[2] / "examples" / "first_steps.ipynb"
LESS = {
    "num_envs=32, steps=250": "num_envs=16, steps=150",
    'hz.preset_cfg("smoke", "mlp")': "short",
}
"""What a reader waits for, and what is enough to see that it runs."""


@pytest.mark.slow
def test_notebook_runs_from_top_to_bottom(tmp_path, monkeypatch, last_only, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HORIZON_CACHE", str(tmp_path / "cache"))
    from horizon_rl.training.presets import preset_cfg

    last_only(4.0)
    matplotlib.use("agg")
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    for text in LESS:
        assert sum("".join(cell["source"]).count(text) for cell in code) == 1
    names: dict = {"short": replace(preset_cfg("smoke", "mlp"), steps=6000)}
    for cell in code:
        source = "".join(cell["source"])
        for text, less in LESS.items():
            source = source.replace(text, less)
        exec(compile(source, cell["id"], "exec"), names)
        assert cell["outputs"] == []  # What it shows depends on the machine.
    # It walks at about the commanded speed, and the wider the fewer stay on their feet.
    assert 0.6 < names["speeds"][100:].mean() < 1.0
    base, core = names["shares"]["base"], names["shares"]["core"]
    assert base[0] >= 0.9 and core[0] >= 0.9 and base[-1] < 0.6
    assert core[1] > base[1]
    assert 0.4 < names["result"].success["all"] <= 1.0
    assert len(names["plt"].get_fignums()) == 2
    assert names["training"].path.is_dir() and names["training"].ended
    assert names["trained"](names["obs"]).shape == (8, 12)
    assert "commit" in capsys.readouterr().out or names["training"].levels
