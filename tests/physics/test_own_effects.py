"""Effects that a catalogue names: a file of the user's own reaches every command."""

from pathlib import Path

import numpy as np
import pytest
from worlds import GRAVITY, STRONG, begin, exact_pool, hold

from horizon_rl.cli import main
from horizon_rl.domains import load_catalogue
from horizon_rl.evaluation.suite_file import load_suite
from horizon_rl.physics import effects_of
from horizon_rl.robots import build_robot, load_preset
from horizon_rl.support.errors import InputError

EXAMPLES = Path(__file__).parents[2] / "examples"

CATALOGUE = """
extends = "paper"
[groups.mine.parameters.grip]
baseline = [1.0, 1.0]
limit = [0.5, 1.0]
effect = "{}"
"""
CODE = """
def loosen(rows, share):
    rows.friction = rows.friction * share

number = 3
"""


@pytest.fixture
def mine(tmp_path):
    def write(effect="code.py:loosen", code=CODE):
        (tmp_path / "code.py").write_text(code)
        (tmp_path / "mine.toml").write_text(CATALOGUE.format(effect))
        return tmp_path / "mine.toml"

    return write


def test_the_example_s_box_weighs_on_the_feet():
    go2 = build_robot(load_preset("go2"))
    catalogue = load_catalogue(EXAMPLES / "payload.toml")
    weight = np.array([0.0, 3.0, 8.0])
    pool = exact_pool([go2], 3, STRONG | {"payload.weight": weight}, catalogue)
    backend = begin(pool)
    hold(backend, pool, 150)
    load = backend.state.foot_force.sum(dim=1).numpy()
    expected = (go2.total_mass_kg + weight) * GRAVITY
    assert load == pytest.approx(expected, rel=0.01), f"{load} of {expected} N"
    raised = pool.fields["body_ipos"][:, go2.trunk_body_id, 2]
    assert raised[0] < raised[1] < raised[2] < 0.12


def test_a_plain_function_will_do(mine):
    effects = effects_of(load_catalogue(mine()))
    assert effects["mine.grip"].apply.__name__ == "loosen"
    assert "mass.scale" in effects


@pytest.mark.parametrize(
    ("effect", "message"),
    [
        ("code.py:loosn", "has no 'loosn'"),
        ("cod.py:loosen", "there is no file .*cod.py"),
        ("code.py:number", "is no effect. Accepted: FILE.py:NAME"),
        ("no_such_module:loosen", "no module or directory of that name"),
        ("loosen", "Accepted: FILE.py:NAME"),
    ],
)
def test_what_is_no_effect_is_refused(mine, effect, message):
    with pytest.raises(InputError, match=message):
        effects_of(load_catalogue(mine(effect)))


def test_it_reaches_training_and_evaluation(mine, tmp_path, capsys):
    run = tmp_path / "run"
    train = ["train", "--preset", "smoke", "--steps", "4000", "--table", "0"]
    train += ["--catalogue", str(mine()), "--groups", "mine", "--run", str(run)]
    assert main(train) == 0, capsys.readouterr().err
    suite = tmp_path / "suite.toml"
    suite.write_text('task.episode_s = 2\n[columns]\nslippery.groups = ["mine"]\n')
    evaluate = ["eval", str(run), "--catalogue", str(tmp_path / "mine.toml")]
    assert main([*evaluate, "--suite", str(suite), "--episodes", "1", "--fresh"]) == 0
    assert "slippery" in capsys.readouterr().out


def test_other_code_is_another_suite(mine, tmp_path):
    suite = tmp_path / "suite.toml"
    suite.write_text('episodes = 2\n[columns]\nslippery.groups = ["mine"]\n')
    digests = {
        load_suite(str(suite), catalogue=load_catalogue(mine(code=code))).digest
        for code in (CODE, CODE, CODE + "\n# another\n")
    }
    assert len(digests) == 2


def test_a_suite_without_its_code_is_refused(mine):
    with pytest.raises(InputError, match="there is no file .*cod.py"):
        load_suite("ood", 0.5, catalogue=load_catalogue(mine("cod.py:loosen"))).digest  # noqa: B018


def test_impossible_values_of_one_s_own_are_refused_in_a_suite(tmp_path):
    catalogue = load_catalogue(EXAMPLES / "payload.toml")
    suite = tmp_path / "suite.toml"
    suite.write_text("[columns.a]\nparameters.payload.weight = -1.0\n")
    with pytest.raises(InputError, match=r"suite.toml:2.*-1 is impossible|-1..-1 is"):
        load_suite(str(suite), catalogue=catalogue)
