"""Bad input to the physics is refused in words a user can act on."""

import numpy as np
import pytest
from worlds import exact_pool, over_limits

from horizon_rl.domains import InRanges, Range, paper_catalogue, parse_catalogue
from horizon_rl.physics import CpuBackend, build_pool, check_catalogue, sample_pool
from horizon_rl.robots import Robot, build_robot, load_preset
from horizon_rl.support.errors import InputError


@pytest.fixture(scope="module")
def go2() -> Robot:
    return build_robot(load_preset("go2"))


@pytest.mark.parametrize("count", [0, -1])
def test_a_backend_needs_worlds(go2, count):
    with pytest.raises(InputError, match=f"^{count} worlds; at least 1 is needed"):
        CpuBackend(go2, count)


@pytest.mark.parametrize("count", [0, -1])
def test_a_pool_needs_instances(go2, count):
    with pytest.raises(InputError, match=f"a pool of {count} instances of 1 bodies"):
        sample_pool(
            [go2], paper_catalogue(), over_limits(), count, np.random.default_rng(0)
        )


def test_a_pool_needs_bodies():
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="of 0 bodies; at least 1"):
        sample_pool([], paper_catalogue(), over_limits(), 5, rng)


def test_a_parameter_that_nothing_applies_gets_a_suggestion():
    catalogue = parse_catalogue(
        "[groups.mass.parameters.scal]\nbaseline = [1, 1]\nlimit = [0.5, 2]"
    )
    with pytest.raises(
        InputError,
        match="nothing applies unknown parameter 'mass.scal': did you mean "
        "'mass.scale'.*docs/own-domain.md",
    ):
        check_catalogue(catalogue)


@pytest.mark.parametrize(
    ("name", "limit", "message"),
    [
        ("mass.scale", "[0.0, 2.0]", "limit 0..2 is impossible; accepted: 0.01..inf"),
        ("mass.scale", "[-1.0, 2.0]", "limit -1..2 is impossible"),
        ("inertia.scale", "[0.0, 2.0]", "accepted: 0.01..inf"),
        ("contact.restitution", "[0.0, 1.1]", "limit 0..1.1 is impossible.*0..1$"),
        ("contact.static_friction", "[-0.1, 2.0]", "accepted: 0..inf"),
        ("contact.dynamic_friction", "[-0.1, 2.0]", "accepted: 0..inf"),
        ("actuation.effort_limit", "[-5.0, 80.0]", "accepted: 0..inf"),
        ("actuation.velocity_limit", "[0.0, 60.0]", "accepted: 0.1..inf"),
        ("actuation.stiffness", "[-1.0, 80.0]", "accepted: 0..inf"),
        ("actuation.damping", "[-1.0, 4.0]", "accepted: 0..inf"),
    ],
)
def test_limits_that_no_physics_allows_are_refused(name, limit, message):
    group, parameter = name.split(".")
    text = (
        f'extends = "paper"\n[groups.{group}.parameters.{parameter}]\nlimit = {limit}'
    )
    with pytest.raises(InputError, match=f"{name}: .*{message}"):
        check_catalogue(parse_catalogue(text))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mass.scale", 0.0),
        ("contact.restitution", 1.5),
        ("contact.static_friction", -0.1),
        ("actuation.damping", -1.0),
    ],
)
def test_exact_values_that_no_physics_allows_are_refused(go2, name, value):
    catalogue = paper_catalogue()
    exact = catalogue.ranges({}) | {name: Range(value, value)}
    with pytest.raises(InputError, match=f"{name} = {value:g} is impossible; accepted"):
        sample_pool([go2], catalogue, InRanges(exact), 4, np.random.default_rng(0))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(go2, value):
    with pytest.raises(InputError, match=f"com.offset = {value:g} is impossible"):
        exact_pool([go2], 1, {"com.offset": [(0.0, value, 0.0)]})


@pytest.mark.parametrize(
    ("name", "draws", "accepted"),
    [
        ("com.offset", 1, "draws = 1; accepted: 3"),
        ("mass.scale", 12, "draws = 12; accepted: 1"),
        ("reset.joint_velocity", 1, "draws = 1; accepted: 12"),
    ],
)
def test_a_wrong_number_of_draws_is_refused(name, draws, accepted):
    group, parameter = name.split(".")
    text = (
        f'extends = "paper"\n[groups.{group}.parameters.{parameter}]\ndraws = {draws}'
    )
    with pytest.raises(InputError, match=f"{name}: {accepted}"):
        check_catalogue(parse_catalogue(text))


@pytest.mark.parametrize("draws", [1, 3])
def test_a_push_needs_x_and_y(go2, draws):
    catalogue = parse_catalogue(
        'extends = "paper"\n'
        f"[groups.disturbance.parameters.push_velocity]\ndraws = {draws}"
    )
    with pytest.raises(InputError, match="needs 2 draws per push, x and y"):
        exact_pool([go2], 1, catalogue=catalogue)


def test_instances_must_fit_the_catalogue(go2):
    catalogue = paper_catalogue()
    good = exact_pool([go2], 2).instances
    bodies = np.zeros(2, dtype=int)
    short = good | {"com.offset": np.zeros((1, 3))}
    with pytest.raises(InputError, match=r"com.offset: needs values of shape \(2, 3\)"):
        build_pool([go2], catalogue, short, bodies)
    missing = {name: v for name, v in good.items() if name != "mass.scale"}
    with pytest.raises(InputError, match=r"mass.scale: needs values of shape \(2,\)"):
        build_pool([go2], catalogue, missing, bodies)
    with pytest.raises(InputError, match="unknown parameter 'mass.sale': did you mean"):
        build_pool([go2], catalogue, good | {"mass.sale": np.ones(2)}, bodies)


def test_a_body_whose_motors_nothing_describes_is_refused(go2):
    from dataclasses import replace

    unknown = replace(go2, name="mystery", torque_limit_nm=np.full(12, np.nan))
    catalogue = parse_catalogue(
        "[groups.mass.parameters.scale]\nbaseline = [1, 1]\nlimit = [0.5, 2]"
    )
    with pytest.raises(
        InputError,
        match="torque limits of 'mystery'.*no actuation.effort_limit",
    ):
        exact_pool([go2, unknown], 2, catalogue=catalogue)
    assert len(exact_pool([go2, unknown], 2)) == 2


def test_gains_that_nothing_tells_are_scaled_to_the_body(go2):
    from dataclasses import replace

    # A file with torque motors: twice Go2's mass, a quarter of its legs.
    nothing = np.full(12, np.nan)
    unknown = replace(
        go2,
        stiffness_nm_rad=nothing,
        damping_nm_s_rad=nothing,
        velocity_limit_rad_s=nothing,
        body_mass_kg=2.0 * go2.body_mass_kg,
        thigh_length_m=0.25 * go2.thigh_length_m,
        calf_length_m=0.25 * go2.calf_length_m,
    )
    catalogue = parse_catalogue(
        "[groups.mass.parameters.scale]\nbaseline = [1, 1]\nlimit = [0.5, 2]"
    )
    pool = exact_pool([go2, unknown], 2, catalogue=catalogue)
    own, filled = (pool.body_ids == body for body in (0, 1))
    bias = pool.fields["actuator_biasprm"]
    # 40 N m/rad with m L, 1 N m s/rad with m L^1.5, 30 rad/s with L^-0.5.
    assert bias[filled][0, 0, 1:3] == pytest.approx([-20.0, -0.25])
    assert pool.velocity_limit[filled] == pytest.approx(60.0)
    assert pool.effort[filled][0] == pytest.approx(go2.torque_limit_nm)
    assert bias[own][0, 0, 1] == pytest.approx(-go2.stiffness_nm_rad[0])
