"""Balls and capsules on triangles: nearest points, depth, and which way is out.

How deep they are on rough ground, against MuJoCo, is tests/physics/test_gpu_terrain.py's.
"""

# Kernels are Python in form only: Warp compiles them, checkers cannot follow.
# pyright: reportInvalidTypeForm=false, reportGeneralTypeIssues=false
# pyright: reportAttributeAccessIssue=false

import mujoco
import numpy as np
import pytest
from gpu_worlds import DEVICE, wp

from horizon_rl.physics.gpu_triangles import touch_triangle
from horizon_rl.robots import TERRAIN

import mujoco_warp as mjw  # isort: skip  After gpu_worlds, which may skip.

FLAT = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0]], np.float32)
STEEP = np.array([[0, 0, 0], [0.1, 0, 0.2], [0.1, 1, 0.2]], np.float32)


@wp.kernel
def touch_each(
    begins: wp.array[wp.vec3],
    ways: wp.array[wp.vec3],
    triangle: wp.array[wp.vec3],
    met: wp.array[int],
    distance: wp.array[float],
    core: wp.array[wp.vec3],
    out: wp.array[wp.vec3],
):
    i = wp.tid()
    a, b, c = triangle[0], triangle[1], triangle[2]
    meets, found, point, normal = touch_triangle(begins[i], ways[i], a, b, c)
    met[i] = int(meets)
    distance[i] = found
    core[i] = point
    out[i] = normal


def touch(begins, ends, triangle):
    """Return what cores from begins to ends find, one by one, as arrays."""
    begins, ends = np.atleast_2d(begins), np.atleast_2d(ends)
    n = len(begins)
    with wp.ScopedDevice(DEVICE):
        given = [
            wp.array(np.asarray(values, np.float32), dtype=wp.vec3)
            for values in (begins, ends - begins, triangle)
        ]
        found = [wp.zeros(n, dtype=kind) for kind in (int, float, wp.vec3, wp.vec3)]
        wp.launch(touch_each, dim=n, inputs=given, outputs=found)
        return [array.numpy() for array in found]


def inside(triangle, count):
    """Points all over a triangle."""
    u, v = np.meshgrid(np.linspace(0, 1, count), np.linspace(0, 1, count))
    u, v = u.ravel(), v.ravel()
    u, v = u[u + v <= 1.0], v[u + v <= 1.0]
    a, b, c = triangle.astype(float)
    return a + u[:, None] * (b - a) + v[:, None] * (c - a)


@pytest.mark.parametrize("triangle", [FLAT, STEEP], ids=["flat", "steep"])
@pytest.mark.parametrize("ball", [True, False], ids=["ball", "capsule"])
def test_no_point_of_core_and_triangle_is_nearer(triangle, ball):
    rng, n = np.random.default_rng(0), 200
    begins = rng.uniform([-0.5, -0.5, 0.25], [1.5, 1.5, 0.8], (n, 3))
    ends = begins if ball else begins + rng.uniform(-0.3, 0.3, (n, 3)) * [1, 1, 0.5]
    met, distance, core, out = touch(begins, ends, triangle)
    surface, shares = inside(triangle, 101), np.linspace(0, 1, 1 if ball else 41)
    up = np.cross(triangle[1] - triangle[0], triangle[2] - triangle[0])
    for i in np.flatnonzero(met):
        points = begins[i] + shares[:, None] * (ends - begins)[i]
        apart = np.linalg.norm(points[:, None] - surface[None], axis=2).min()
        assert distance[i] == pytest.approx(apart, abs=0.012)
        assert distance[i] <= apart + 1e-5
        assert np.linalg.norm(out[i]) == pytest.approx(1.0, abs=1e-5)
        assert np.dot(out[i], up) >= -1e-6
    # A core that has the face behind it is another triangle's.
    above = ((begins - triangle[0]) @ up > 0.0) & ((ends - triangle[0]) @ up > 0.0)
    assert met[above].all() and above.sum() > n / 4


def test_under_the_ground_out_is_up():
    met, distance, core, out = touch([0.6, 0.3, -0.05], [0.6, 0.3, -0.05], FLAT)
    assert met[0] == 1 and distance[0] == pytest.approx(-0.05)
    assert out[0].tolist() == [0.0, 0.0, 1.0]
    # A capsule through the surface: by its lowest point that lies under the triangle.
    met, distance, core, out = touch([0.6, 0.3, 0.1], [1.4, 0.3, -0.3], FLAT)
    assert met[0] == 1 and distance[0] == pytest.approx(-0.1, abs=1e-6)
    assert core[0] == pytest.approx([1.0, 0.3, -0.1], abs=1e-6)
    assert out[0].tolist() == [0.0, 0.0, 1.0]


def test_beside_the_triangle_and_under_its_plane_it_is_not_met():
    """There another triangle is nearer; the edge of this one would push downward."""
    assert touch([0.6, -0.01, -0.005], [0.6, -0.01, -0.005], FLAT)[0][0] == 0
    # On its own side of the plane the edge counts.
    met, distance, _, out = touch([0.6, -0.03, 0.04], [0.6, -0.03, 0.04], FLAT)
    assert met[0] == 1 and distance[0] == pytest.approx(0.05)
    assert out[0] == pytest.approx([0.0, -0.6, 0.8], abs=1e-6)


@pytest.mark.parametrize("height_m, contacts", [(0.0215, 1), (0.0245, 1), (0.0255, 0)])
def test_a_margin_makes_contacts_before_a_ball_touches(height_m, contacts):
    spec, kinds = mujoco.MjSpec(), mujoco.mjtGeom
    TERRAIN.add_to(spec)
    spec.geom("floor").contype = spec.geom("floor").conaffinity = 1
    body = spec.worldbody.add_body(pos=[0.33, 0.21, height_m])
    body.add_freejoint()
    body.add_geom(type=kinds.mjGEOM_SPHERE, size=[0.022, 0.0, 0.0], margin=0.003)
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert data.ncon == contacts
    with wp.ScopedDevice(DEVICE):
        engine, worlds = mjw.put_model(model), mjw.make_data(model, 1, nconmax=8)
        for stage in (mjw.kinematics, mjw.com_pos, mjw.collision):
            stage(engine, worlds)
        assert int(worlds.nacon.numpy()[0]) == contacts
        if contacts:
            found = float(worlds.contact.dist.numpy()[0])
            assert found == pytest.approx(height_m - 0.022, abs=1e-5)
