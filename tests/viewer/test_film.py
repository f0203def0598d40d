"""Films and pictures, drawn offscreen."""

import itertools
import math
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("imageio_ffmpeg", reason="needs the extra viewer")
pytest.importorskip("imageio", reason="needs the extra viewer")

import imageio.v2 as imageio
import imageio_ffmpeg

from horizon_rl.cli import main
from horizon_rl.domains import shipped_catalogue
from horizon_rl.policies.load import load_policy
from horizon_rl.robots.picture import choose_gl
from horizon_rl.support.errors import InputError
from horizon_rl.viewer import film as movie
from horizon_rl.viewer.film import MovieCfg, parse_size
from horizon_rl.viewer.montage import (
    PAPER_ROBOTS,
    draw_parade,
    film_parade,
    start_parade,
)
from horizon_rl.viewer.session import Session
from horizon_rl.viewer.setup import free_setup
from horizon_rl.viewer.studio import Studio, look_at


@pytest.fixture(scope="module", autouse=True)
def needs_gl():
    try:
        choose_gl()
    except InputError as error:
        pytest.skip(str(error))


def read_movie(path: Path) -> tuple[dict, np.ndarray]:
    reader = imageio_ffmpeg.read_frames(str(path))
    facts = next(reader)
    width, height = facts["size"]
    frames = [np.frombuffer(f, np.uint8).reshape(height, width, 3) for f in reader]
    return facts, np.stack(frames)


@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_video_of_a_scenario_shows_two_moving_robots(suffix, tmp_path, capsys):
    path = tmp_path / f"film{suffix}"
    args = "play base-mlp --versus core-mlp --scenario ood:all@0.5#2 --seconds 0.8"
    assert (
        main([*args.split(), *f"--size 320x180 --fps 10 --video {path}".split()]) == 0
    )
    facts, frames = read_movie(path)
    assert facts["size"] == (320, 180) and len(frames) == 8
    change = np.abs(frames[-1].astype(int) - frames[0]).max(axis=-1)
    # Below the captions, in either half.
    for half in (change[60:160, :155], change[60:160, 165:]):
        assert (half > 60).sum() > 20
    said = capsys.readouterr().out
    assert "base-mlp: " in said and "core-mlp: " in said and f"filmed in {path}" in said


def test_a_film_follows_a_robot_over_the_end_of_a_period(tmp_path):
    """Its robot is put back by a period; camera and ground go along unseen."""
    setup = free_setup("go2", shipped_catalogue("extended"), "ramp-5")
    session = Session(load_policy("stand"), setup)
    backend: Any = session.env.backend
    qpos = backend._qpos
    qpos[0, :3] = 3.0, 0.0, qpos[0, 2] + math.tan(math.radians(5.0)) * 1.4
    session.push(np.array((1.5, 0.0)))
    session.step()
    cfg = movie.MovieCfg(width=320, height=180, fps=10)
    places, frames = [], []
    for frame in movie.film_sessions([session], cfg, 1.0, label=lambda *_: None):
        places.append(session.place[0])
        frames.append(frame.astype(int))
    assert max(places) > 3.0 and min(places) < -2.9
    jump = int(np.argmin(np.diff(places)))
    changes = [np.abs(b - a).mean() for a, b in itertools.pairwise(frames)]
    assert changes[jump] < 3.0 * np.median(changes) + 1.0, f"{changes}"


def test_video_on_stairs_by_name(tmp_path):
    path = tmp_path / "stairs.mp4"
    args = (
        f"play base-mlp --ground stairs-8 --seconds 0.4 --size 320x180 --video {path}"
    )
    assert main(args.split()) == 0
    _, frames = read_movie(path)
    # Steps, not the tiles of a plane: more shades of grey than these have.
    assert len(np.unique(frames[0][60:].mean(axis=-1).round())) > 60


def test_push_is_marked_in_red():
    session = Session(load_policy("stand"), free_setup("go2"))
    red = []
    with closing(Studio(session.robot, 320, 180)) as studio:
        for push in (None, np.array((0.0, -1.0))):
            camera = look_at((0.0, 0.0, 0.25), 2.2)
            pixels = studio.draw([session.state], camera, push).astype(int)
            red.append(int((pixels[..., 0] - pixels[..., 1:].max(axis=-1) > 80).sum()))
    assert red[0] == 0 and red[1] > 50


@pytest.mark.slow
def test_montage_shows_the_seven_robots_of_the_paper(monkeypatch, tmp_path):
    monkeypatch.setattr("horizon_rl.viewer.montage.PACE_S", 0.6)
    sessions = start_parade(load_policy("base-mlp"), (0.8, 0.0, 0.0))
    assert [session.body.robot for session in sessions] == list(PAPER_ROBOTS)
    cfg = MovieCfg(width=640, height=300, fps=5.0)
    first, *_, last = film_parade(sessions, cfg, 0.6)
    assert first.shape == (300, 640, 3)
    for number in range(7):
        row, column = divmod(number, 4)
        panel = np.s_[
            row * 150 + 40 : row * 150 + 150, column * 160 : column * 160 + 160
        ]
        assert (np.abs(last[panel].astype(int) - first[panel]) > 60).sum() > 20
    path = tmp_path / "seven.png"
    movie.write_picture(path, draw_parade(sessions))
    picture = imageio.imread(path)
    assert picture.shape[1] > 800 and picture.shape[0] > 600
    assert picture.std() > 10.0


def test_broken_off_video_leaves_what_was_there(tmp_path):
    path = tmp_path / "film.mp4"
    path.write_bytes(b"before")

    def frames():
        yield np.zeros((64, 64, 3), np.uint8)
        raise InputError("policy broke")

    with pytest.raises(InputError, match="policy broke"):
        movie.write_movie(path, frames(), 25.0)
    assert path.read_bytes() == b"before" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("nosuch", "no policy 'nosuch'"),
        ("base-mlp --video film.avi", "ends in .mp4 or .gif"),
        ("base-mlp --video no/such/film.mp4", "no folder no/such"),
        ("base-mlp --video film.mp4 --size 960", "WIDTHxHEIGHT"),
        ("base-mlp --video film.mp4 --size 961x540", "even numbers"),
        ("base-mlp --video film.mp4 --fps 100", "1..50"),
        ("base-mlp --video film.mp4 --seconds 0", "--seconds is 0"),
        ("base-mlp --video film.mp4 --scenario ood:mas", "did you mean 'mass'"),
        ("base-mlp --video film.mp4 --robot go3", "unknown robot 'go3'"),
        ("base-mlp --versus core-mlp --native", "leave out --versus"),
        ("base-mlp --versus core-mlp --ground ramp-5", "for films: add --video"),
        ("base-mlp --seconds 3", "--fps go with --video"),
        ("base-mlp --montage --robot go2", "its own robots"),
        ("base-mlp --montage --picture a.jpg", "must end in .png"),
        ("base-mlp --montage --catalogue extended", "the paper's baseline"),
        ("base-mlp --scenario ood:mass --command 1 0 0", "leave out --command"),
        ("base-mlp --native --video film.mp4", "leave out --video"),
        ("base-mlp --video film.mp4 --ground stair-8", "did you mean 'stairs-8'"),
        ("base-mlp --ground stairs-8 --scenario ood:mass", "leave out --ground"),
        ("base-mlp --ground ramp-5 --catalogue paper", "needs the group terrain"),
    ],
)
def test_bad_flags_are_refused(flags, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["play", *flags.split()]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_window_without_a_display_is_refused(monkeypatch, capsys):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("platform.system", lambda: "Linux")
    assert main(["play", "base-mlp", "--native"]) == 2
    assert "no display" in capsys.readouterr().err


def test_film_without_gl_is_refused(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("MUJOCO_GL", "osmosis")
    path = tmp_path / "film.mp4"
    assert main(["play", "stand", "--video", str(path), "--seconds", "0.1"]) == 2
    assert "GL backend 'osmosis' does not work" in capsys.readouterr().err
    assert not path.exists()


def test_size_is_read():
    assert parse_size("640x360") == (640, 360)
