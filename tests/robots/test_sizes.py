"""Size classes: thirds of the generated bodies, and where the real robots belong."""

from collections import Counter

import numpy as np
import pytest

from horizon_rl.robots import (
    build_robot,
    generate,
    load_body,
    load_preset,
    preset_names,
    size_class,
)

SIZE_CLASSES = ("small", "medium", "large")


def test_presets_are_where_an_owner_would_look_for_them():
    classes = {name: size_class(load_preset(name)) for name in preset_names()}
    of = {size: {n for n, c in classes.items() if c == size} for size in SIZE_CLASSES}
    assert of == {
        "small": {"go2", "go1", "a1", "cyberdog1", "cyberdog2", "barkour"},
        "medium": {"aliengo", "laikago"},
        "large": {"spot", "anymal_b", "anymal_c", "b1", "b2"},
    }


def test_classes_split_generated_bodies_roughly_in_thirds():
    bodies = generate(np.random.default_rng(7), 1000)
    counts = Counter(map(size_class, bodies))
    assert set(counts) == set(SIZE_CLASSES)
    assert all(0.27 < n / len(bodies) < 0.40 for n in counts.values()), counts


def test_a_built_robot_has_the_class_of_its_body_payload_or_not():
    pytest.importorskip("mujoco")
    for name in ("go2", "go2+two-payloads", "aliengo+two-payloads", "b2"):
        intact = load_preset(name.split("+")[0])
        assert size_class(build_robot(load_body(name))) == size_class(intact), name
