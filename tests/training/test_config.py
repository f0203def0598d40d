"""Settings of a run: what they come to, and what is refused."""

import pytest
from small_runs import create, tiny

from horizon_rl.domains import parse_catalogue
from horizon_rl.support.errors import InputError


def test_phase_lasts_two_and_a_half_of_the_longest_episodes_at_least():
    assert tiny().task.max_steps == 8
    assert tiny(phase_iterations=1).iterations == 4  # 2.5 * 8 / 5
    assert tiny(phase_iterations=6).iterations == 6


@pytest.mark.parametrize("method", ["horizon", "joint", "linear", "wide"])
def test_other_methods_with_every_group_fixed_are_refused(method, tmp_path):
    with pytest.raises(InputError, match="fix all of the groups 'mass,com'"):
        create(tiny(method=method, levels="all=0.5"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("mass", ["[1.0, 1.0]", "[0.4, 5.0]"])
def test_groups_in_which_nothing_can_be_widened_are_refused(mass):
    still = parse_catalogue(f"""
    extends = "paper"
    [groups.mass.parameters.scale]
    baseline = {mass}
    limit = {mass}
    [groups.disturbance.parameters.external_force]
    baseline = [0.0, 0.0]
    limit = [0.0, 0.0]
    """)
    for method in ("horizon", "paper", "scalar-adr", "joint"):
        with pytest.raises(InputError, match="nothing to widen in mass: limits are"):
            tiny(method=method).make_method(still)
        tiny(method=method, groups="disturbance").make_method(still)
    tiny(method="fixed", levels="0.5").make_method(still)


def test_fixed_needs_its_levels_and_no_level_is_beyond_the_limit(tmp_path):
    with pytest.raises(InputError, match="method fixed needs --levels, as in 0.5"):
        create(tiny(method="fixed"), tmp_path / "run")
    for method in ("fixed", "linear"):
        with pytest.raises(InputError, match=r"levels is 1.5; accepted: .*1"):
            create(tiny(method=method, levels="1.5"), tmp_path / "run")
    with pytest.raises(InputError, match="0.5"):
        create(tiny(method="paper", levels="0.5"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_unknown_group_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(InputError, match="did you mean 'mass'"):
        create(tiny(groups="mas"), tmp_path / "run")
    with pytest.raises(InputError, match="outside 0..1"):
        create(tiny(levels="contact=2"), tmp_path / "run")
    assert not (tmp_path / "run").exists()
