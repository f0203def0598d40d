"""MJCF files that ask for too much, or for numbers that are none: refused at once."""

import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from horizon_rl.robots import load_mjcf  # noqa: E402  Needs MuJoCo.
from horizon_rl.robots.declared_sizes import check_declared_sizes  # noqa: E402
from horizon_rl.support.errors import InputError  # noqa: E402

OWN = (Path(__file__).parents[2] / "examples/own_robot.xml").read_text()
HFIELD = '<asset><hfield name="h" nrow="{}" ncol="{}" size="1 1 1 1"/></asset>'
TEXTURE = (
    '<asset><texture name="t" builtin="flat" type="{}" width="{}" height="{}"/></asset>'
)
REPLICATE = (
    '<replicate count="{0}"><replicate count="{0}"><site/></replicate></replicate>'
)


def write(folder: Path, extra: str, name: str = "robot.xml") -> Path:
    """Write a sound robot with something more before its bodies."""
    file = folder / name
    file.write_text(OWN.replace("<worldbody>", f"{extra}<worldbody>", 1))
    return file


def refuse_to_read(*args: object) -> None:
    pytest.fail("MuJoCo was given the file")


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (HFIELD.format(40000, 40000), "1,600,000,000 cells.*134,217,728 at most"),
        (
            HFIELD.format("9" * 30, 1),
            "<hfield> has nrow='9999.*accepted: numbers up to",
        ),
        (20 * HFIELD.format(3000, 3000), "cells and pixels"),
        (f'<x name="<!--"/>{HFIELD.format(40000, 40000)}<!-- -->', "1,600,000,000"),
        (TEXTURE.format("2d", 40000, 40000), "1,600,000,000 cells and pixels"),
        (TEXTURE.format("cube", 15000, 15000), "1,350,000,000 cells and pixels"),
        (
            '<size memory="100G"/>',
            "memory='100G'; accepted: numbers up to 1,073,741,824",
        ),
        ('<size nuser_geom="20000000"/>', "<size> has nuser_geom='20000000'"),
        (
            '<size nkey="200000000"/>',
            "nkey='200000000'; accepted: numbers up to 10,000",
        ),
        ('<sensor><user dim="2000000000"/></sensor>', "<user> has dim="),
        ('<actuator><general actdim="200000000"/></actuator>', "<general> has actdim="),
        (
            '<asset><mesh builtin="plate" params="10000 10000"/></asset>',
            "params='10000'",
        ),
        (REPLICATE.format(1000), "too many elements.*accepted: 10,000 at most"),
        (REPLICATE.format(-1000000), "too many elements|MuJoCo"),
        ('<composite count="1000 1000 1"/>', "too many elements"),
        ("<!-- never ends", "robot.xml:12: not XML"),
        (f"<!--{' ' * (1 << 24)}-->", "larger than 16 MB"),
    ],
)
def test_size_is_refused_before_it_is_allocated(extra, message, tmp_path, monkeypatch):
    file = write(tmp_path, extra)
    if "-1000000" not in extra:
        monkeypatch.setattr(mujoco.MjSpec, "from_file", refuse_to_read)
    with pytest.raises(InputError, match=message):
        load_mjcf(file)


def test_sizes_of_included_files_count_too(tmp_path, monkeypatch):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/a.xml").write_text('<mujoco><include file="b.xml"/></mujoco>')
    huge = HFIELD.format(40000, 40000)
    (tmp_path / "parts/b.xml").write_text(f"<mujoco>{huge}</mujoco>")
    file = write(tmp_path, '<include file="parts/a.xml"/>')
    monkeypatch.setattr(mujoco.MjSpec, "from_file", refuse_to_read)
    with pytest.raises(InputError, match="1,600,000,000 cells"):
        load_mjcf(file)


@pytest.mark.parametrize("name", ["robot.xml", "no.xml", "a\x00b", "x" * 5000, "."])
def test_strange_include_is_left_to_mujoco(name, tmp_path):
    with pytest.raises(InputError, match="MuJoCo cannot load it|not XML"):
        load_mjcf(write(tmp_path, f'<include file="{name}"/>'))


def test_image_that_unpacks_to_too_much_is_refused(tmp_path):
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 12000, 12000)
    (tmp_path / "big.png").write_bytes(head)
    file = write(tmp_path, '<asset><texture type="2d" file="big.png"/></asset>')
    with pytest.raises(InputError, match="144,000,000 cells and pixels"):
        load_mjcf(file)


@pytest.mark.parametrize(
    "extra",
    [
        "<!-- as -- people --- write -->",
        HFIELD.format(10, 10),
        TEXTURE.format("2d", 512, 512),
        '<size memory="10M" nuser_geom="3"/>',
        "<!DOCTYPE x><?y z?>",
    ],
)
def test_usual_sizes_are_accepted(extra, tmp_path):
    try:
        load_mjcf(write(tmp_path, extra))
    except InputError as error:
        assert "MuJoCo cannot load it: XML" in str(error), "ours refused it"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RuntimeError("Caught an unknown exception!"), "unknown exception"),
        (MemoryError(), "not enough memory"),
    ],
)
def test_memory_that_runs_out_is_said(error, message, tmp_path, monkeypatch):
    def fail(path: str) -> None:
        raise error

    monkeypatch.setattr(mujoco.MjSpec, "from_file", fail)
    with pytest.raises(InputError, match=f"MuJoCo cannot load it: .*{message}"):
        load_mjcf(write(tmp_path, ""))


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ('<option timestep="nan"/>', "timestep is nan; accepted: finite"),
        ('<option gravity="0 0 inf"/>', "gravity is inf; accepted: finite"),
    ],
)
def test_numbers_that_are_not_finite_are_refused(extra, message, tmp_path):
    with pytest.raises(InputError, match=message):
        load_mjcf(write(tmp_path, extra))


def test_textures_of_anymal_c_are_not_too_much(tmp_path):
    # 79.7 million pixels in the menagerie's file; not read, which takes seconds.
    check_declared_sizes(write(tmp_path, TEXTURE.format("2d", 9216, 8640)))


def test_infinite_range_is_none(tmp_path):
    motor = '<motor joint="left_front_abad" ctrlrange="-inf inf"/>'
    robot = load_mjcf(write(tmp_path, f"<actuator>{motor}</actuator>"))
    assert not np.isinf(robot.torque_limit_nm).any()


def test_long_name_of_a_tag_takes_no_time(tmp_path):
    # Tried at every length of the name, it would take minutes.
    (tmp_path / "robot.xml").write_text(f"<{1_000_000 * 'a'}!")
    with pytest.raises(InputError, match="not XML from this tag on"):
        load_mjcf(tmp_path / "robot.xml")


def test_mujoco_writes_neither_warnings_nor_a_log(tmp_path):
    write(tmp_path, '<option timestep="nan"/>')
    (tmp_path / "empty").mkdir()
    # In a process of its own: others have silenced MuJoCo in this one.
    code = "import sys; from horizon_rl.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "robots", "../robot.xml"],
        **{"cwd": tmp_path / "empty", "capture_output": True, "text": True},
    )
    assert done.returncode == 2
    assert re.fullmatch(r"horizon: .*timestep is nan;.*\n", done.stderr)
    assert list((tmp_path / "empty").iterdir()) == []
