"""`horizon grid`: what it refuses, and what it says beforehand. No Ray is started."""

import json
import re
import socket
import time
from collections.abc import Iterator
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path
from threading import Thread

import pytest

pytest.importorskip("mujoco", reason="needs the extra train")
from horizon_rl.cli import main
from horizon_rl.grid.folder import Asked, GridFolder
from horizon_rl.grid.job import Ended, Job, Message
from run_files import stop

STUDY = """
seeds = [0, 1]
[train]
preset = "smoke"
[methods.horizon]
[methods.fixed]
levels = "0.35"
"""


@pytest.fixture
def study(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.toml"
    file.write_text(STUDY)
    return file


def test_dry_run_lists_runs_and_what_they_cost(study, capsys):
    flags = ["--dry-run", "--steps-per-s", "500", "--workers", "4"]
    assert main(["grid", str(study), *flags]) == 0
    out = capsys.readouterr().out
    assert "horizon_s0  25,000 env steps, 50 s\n" in out
    assert "4 runs, 100,000 env steps\n" in out
    # 100,000 / 500 seconds, and a quarter of it.
    assert "3.3 min of runs at 500 steps/s a run (given); 50 s with 4 side" in out
    assert not (study.parent / "logs").exists()


@pytest.mark.parametrize(
    ("gpus", "flags", "said"),
    [
        (2, ("--gpus", "0.4"), "; 50 s with 4 side by side"),
        (2, ("--worlds-per-gpu", "16"), "; 100 s with 2 side by side"),
        (1, (), "; 3.3 min with 1 side by side"),  # A GPU each, where there is one.
        (20, ("--gpus", "0.05"), "; 50 s with 4 side by side"),
        # There are no more than four of them, of 50 s each.
        (0, (), "; 50 s with 4 side by side"),
    ],
)
def test_as_many_runs_side_by_side_as_there_are_gpus_for(
    gpus, flags, said, study, capsys, monkeypatch
):
    names = [str(k) for k in range(gpus)]
    for module in ("cli.grid_plan", "grid.local"):
        monkeypatch.setattr(f"horizon_rl.{module}.gpu_names", lambda: names)
    dry_run = ["--dry-run", "--steps-per-s", "500", "--workers", "8"]
    assert main(["grid", str(study), *dry_run, *flags]) == 0
    assert capsys.readouterr().out.endswith(f"(given){said}\n")


def test_nobody_knows_how_many_runs_a_cluster_does_side_by_side(study, capsys):
    flags = ["--dry-run", "--steps-per-s", "500", "--address", "auto"]
    assert main(["grid", str(study), *flags]) == 0
    assert capsys.readouterr().out.endswith("at 500 steps/s a run (given)\n")


def test_dry_run_refuses_columns_that_there_are_not(study, capsys):
    study.write_text(f'{STUDY}[[evaluate]]\ncolumns = ["nope"]\n')
    assert main(["grid", str(study), "--dry-run"]) == 2
    assert "unknown column 'nope'" in capsys.readouterr().err


@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
@pytest.mark.parametrize("device, flags", [("auto", ("--gpus", "0.5")), ("cuda", ())])
def test_no_gpu_where_one_is_asked(device, flags, dry_run, study, capsys, monkeypatch):
    study.write_text(STUDY.replace("[train]", f'[train]\ndevice = "{device}"'))
    monkeypatch.setattr("horizon_rl.grid.local.gpu_names", list)
    assert main(["grid", str(study), *flags, *dry_run]) == 2
    asked = flags[1] if flags else "1"
    err = capsys.readouterr().err
    assert f"a run asks for {asked} GPU and this machine has none" in err
    # It is not of this machine that they ask.
    assert main(["grid", str(study), *flags, "--address", "auto", "--dry-run"]) == 0


def test_more_cores_than_there_are(study, capsys):
    assert main(["grid", str(study), "--cpus", "5000"]) == 2
    assert "--cpus is 5000; this machine has " in capsys.readouterr().err


def test_dry_run_without_a_speed_says_what_is_missing(study, capsys):
    assert main(["grid", str(study), "--dry-run"]) == 0
    assert "hours: unknown; give --steps-per-s" in capsys.readouterr().out


def test_runs_without_a_limit_are_counted(study, capsys):
    study.write_text('[train]\npreset = "paper"\n[methods.paper]\n')
    assert main(["grid", str(study), "--dry-run"]) == 0
    assert "and 1 run(s) without a limit" in capsys.readouterr().out


def test_ten_thousand_runs_print_in_five_seconds(study, capsys):
    settings = "".join(f"[settings.x{i}]\nwindow = {i + 1}\n" for i in range(50))
    text = STUDY.replace("seeds = [0, 1]", f"seeds = {list(range(100))}")
    study.write_text(text + settings)
    began = time.process_time()
    assert main(["grid", str(study), "--dry-run", "--steps-per-s", "1e4"]) == 0
    assert time.process_time() - began < 5.0
    assert "10000 runs, 250.0 M env steps" in capsys.readouterr().out


def test_runs_that_all_differ_are_read_in_a_millisecond_each(study, capsys):
    settings = "".join(f"[settings.x{i}]\nwindow = {i + 1}\n" for i in range(500))
    study.write_text(STUDY.replace("seeds = [0, 1]", "seeds = [0]") + settings)
    began = time.process_time()
    assert main(["grid", str(study), "--dry-run", "--steps-per-s", "1e4"]) == 0
    assert time.process_time() - began < 2.0
    assert "1000 runs, 25.0 M env steps" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "flags", "complaint"),
    [
        (
            "[methods.horizn]",
            (),
            "run horizn_s0: unknown method 'horizn': did you mean",
        ),
        ('[methods.adr]\ngroups = ["mas"]', (), "unknown group 'mas': did you mean"),
        ("[methods.adr]\nnum_worlds = 3", (), "unknown setting 'num_worlds'"),
        ('[methods.adr]\nrun = "x"', (), "run is no setting of a run"),
        ("[methods.adr]\nnum_envs = 0", (), "num_envs is 0; accepted: whole numbers"),
        (
            "[methods.paper]\nkeep-checkpoints = 2\n[[evaluate]]\nmarks = [1e4]",
            (),
            "run paper_s0: keep-checkpoints deletes checkpoints that marks evaluate",
        ),
        (
            "[methods.paper]\nkeep-checkpoints = 2",
            ("--bring-back", "--address", "auto"),
            "keep-checkpoints deletes checkpoints that --bring-back may be copying",
        ),
        (
            '[methods.adr]\nteachers = ["runs/later"]',
            (),
            "run adr_s0: method adr has no teachers",
        ),
        (
            '[methods.distill]\nteachers = ["later"]\nlearner.algorithm = "gram"',
            (),
            "run distill_s0: method distill has its own loss",
        ),
        (
            '[methods.distill]\nteachers = ["later"]\nsteps = 0\n'
            "learner.distill.ppo-from = 0.5",
            (),
            "run distill_s0: --learner.distill.ppo-from is a share of --steps",
        ),
        (
            '[methods.paper]\nrobot = "go9"',
            (),
            "run paper_s0: unknown robot 'go9': did .*; or generated, mixed",
        ),
        (
            '[methods.paper]\nrobot = "go9"',
            ("--address", "auto"),
            "unknown robot 'go9'",
        ),
        ('[methods.paper]\nrobot = "my.xml"', (), "run paper_s0: my.xml: no such file"),
        (
            '[methods.paper]\ninit = "cor"',
            (),
            "run paper_s0: no checkpoint 'cor': did you",
        ),
        (
            '[methods.distill]\nteachers = ["{grid}/runs/wide_s{seed}@mass=1"]',
            (),
            "run distill_s0: no checkpoint 'out/runs/wide_s0'",
        ),
        (
            'init = "{grid}/runs/horizon_s{seed}"',
            ("--bring-back", "--address", "auto"),
            "run fixed_s0: {grid}: with --bring-back, nodes do not have that folder",
        ),
        (
            # A phase has 6 x 384 steps, and 72 x 50 of probes: 30,904 < 0.9 x 35,000.
            "[methods.paper]\nsteps = 0\n[[evaluate]]\nmarks = [1e8, 35e3]",
            (),
            r"run horizon_s0: its 25,000 .* before any mark \(100,000,000, 35,000\)",
        ),
        (
            '[methods.paper]\ngroups = ["mass,com", "full", "com,mass"]',
            (),
            "run paper_com.mass_s0 widens the same groups as paper_mass.com_s0",
        ),
        ("", ("--gpus", "1.5"), "gpus is 1.5; accepted: 0..1"),
        ("", ("--gpus", "0.5", "--worlds-per-gpu", "9"), "--gpus or --worlds-per-gpu"),
        ("", ("--address", "auto", "--workers", "2"), "--workers are this machine's"),
        ("", ("--bring-back",), "--bring-back is for the nodes of an --address"),
        ("", ("--only", "nothing_*"), "no run of the study is called nothing_"),
        ('[[evaluate]]\nsuite = "odd"', (), "unknown suite 'odd': did you mean 'ood'"),
        ('[[evaluate]]\ncolumns = ["mas"]', (), "unknown column 'mas'"),
        ('[[evaluate]]\ncolumns = ["mas+com"]', (), "unknown column 'mas.com'"),
        ("[[evaluate]]\nepisodes = 2000", (), "episodes is 2000"),
        ("[methods.adr]\nminutes = nan", (), "run adr_s0: .*nan is not"),
        ("[methods.adr]\nsteps = -inf", (), "run adr_s0: .*-inf is not"),
        ("[methods.adr]\nsteps = 2026-11-16", (), "run adr_s0: .*is not"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(
    change, flags, complaint, study, capsys
):
    study.write_text(f"{STUDY}\n{change}\n")
    assert main(["grid", str(study), "--out", "out", *flags]) == 2
    err = " ".join(capsys.readouterr().err.split())
    assert re.search(complaint, err), err
    assert not Path("out").exists()


@pytest.mark.parametrize(
    "name",
    [
        "{grid}/runs/horizon_s{seed}",
        "logs/grid/mine/runs/horizon_s{seed}",
        "{grid}/runs/horizon_s1/checkpoints/phase-00003",
    ],
)
def test_teachers_and_starts_may_be_runs_that_are_not_there_yet(name, study, capsys):
    distill = f'[methods.distill]\nteachers = ["{name}", "{name}@mass=0.5"]\n'
    study.write_text(f'{STUDY}init = "{name}"\n{distill}')
    assert main(["grid", str(study), "--dry-run"]) == 0
    assert "distill_s0" in capsys.readouterr().out


def test_a_run_that_has_begun_does_without_its_start(study):
    study.write_text(f'{STUDY}init = "gone"\n')
    for seed in (0, 1):
        run = GridFolder(Path("logs/grid/mine")).run(f"fixed_s{seed}")
        assert main(["grid", str(study), "--dry-run"]) == 2
        run.mkdir(parents=True)
        (run / "journal.jsonl").touch()
    assert main(["grid", str(study), "--dry-run"]) == 0


def test_a_run_that_goes_on_needs_its_robots_file(study, capsys):
    study.write_text(STUDY.replace("[train]", '[train]\nrobot = "my.xml"'))
    for seed in (0, 1):
        for method in ("horizon", "fixed"):
            stop(Path(f"logs/grid/mine/runs/{method}_s{seed}"))
    assert main(["grid", str(study), "--dry-run"]) == 2
    assert "run horizon_s0: my.xml: no such file" in capsys.readouterr().err
    # Those whose budget is spent do not go on.
    study.write_text(study.read_text().replace("[train]", "[train]\nsteps = 1"))
    assert main(["grid", str(study), "--dry-run"]) == 0


def test_a_teacher_of_many_runs_is_looked_for_once(study, monkeypatch):
    looked: list[str] = []
    for module in ("cli.grid_plan", "training.start"):
        monkeypatch.setattr(f"horizon_rl.{module}.find_checkpoint", looked.append)
    teachers = '[methods.distill]\nteachers = ["core", "core@mass=0.5"]'
    study.write_text(f'{STUDY}init = "base"\n{teachers}\n')
    assert main(["grid", str(study), "--dry-run"]) == 0
    assert looked == ["base", "core"]


def test_files_of_a_cluster_need_not_be_here(study, capsys):
    files = 'robot = "my.xml"\ninit = "mine"\n[methods.distill]\nteachers = ["later"]'
    study.write_text(f"{STUDY}{files}\n")
    assert main(["grid", str(study), "--dry-run", "--address", "auto"]) == 0


@pytest.mark.parametrize("more", ["marks = [1e8, 30e3]", "[[evaluate]]\nmarks = [1e8]"])
def test_a_run_that_is_evaluated_once_is_enough(more, study, capsys):
    study.write_text(f'{STUDY}[[evaluate]]\ncolumns = ["all"]\n{more}\n')
    assert main(["grid", str(study), "--dry-run"]) == 0


def test_runs_are_told_where_the_studys_folder_is(study, monkeypatch):
    told = {}

    def work(job: Job, *_) -> Iterator[Message]:
        told[job.name] = job.config
        yield Ended(standing="stopped")

    monkeypatch.setattr("horizon_rl.grid.local.run_job", work)
    study.write_text(f'{STUDY}init = "{{grid}}/runs/horizon_s{{seed}}"\n')
    assert main(["grid", str(study), "--out", "out"]) == 0
    for seed in (0, 1):
        # Not absolute: the whole may be moved.
        name, place = f"fixed_s{seed}", f"out/runs/horizon_s{seed}"
        assert f'init = "{place}"' in told[name]
        assert f'init = "{place}"' in Path(f"out/settings/{name}.toml").read_text()


def test_a_study_that_is_not_there(capsys):
    assert main(["grid", "none.toml"]) == 2
    assert "cannot read study none.toml" in capsys.readouterr().err


def test_an_address_where_nobody_listens(study, capsys, monkeypatch):
    """Ray is not asked: it would try for minutes."""
    pytest.importorskip("ray", reason="needs the extra grid")
    monkeypatch.setattr("ray.init", lambda **_: pytest.fail("Ray was asked"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert main(["grid", str(study), "--address", f"127.0.0.1:{port}"]) == 2
    assert f"no Ray cluster answers at 127.0.0.1:{port}" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["a..b:10", "localhost:99999", "h:-1", "h:x", ":1"])
def test_an_address_that_cannot_be(address, study, capsys):
    pytest.importorskip("ray", reason="needs the extra grid")
    assert main(["grid", str(study), "--address", address]) == 2
    assert f"--address {address}: accepted: HOST:PORT" in capsys.readouterr().err


def test_an_address_where_no_ray_listens(study, capsys, monkeypatch):
    pytest.importorskip("ray", reason="needs the extra grid")
    monkeypatch.setattr("ray.init", lambda **_: pytest.fail("Ray was asked"))
    with HTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{server.server_port}"
        assert main(["grid", str(study), "--address", address]) == 2
        server.shutdown()
    err = capsys.readouterr().err
    assert f"no Ray cluster answers at {address}: something else listens" in err


def test_a_run_that_has_begun_keeps_its_settings(tmp_path):
    folder = GridFolder(tmp_path)
    with folder.hold():
        folder.write_settings({"a": {"num_envs": 16, "steps": 10}})
        folder.write_settings({"a": {"num_envs": 32, "steps": 10}})  # Not begun.
        folder.run("a").mkdir()
        (folder.run("a") / "journal.jsonl").touch()
        folder.write_settings({"a": {"num_envs": 32, "steps": 20}})
        with pytest.raises(Exception, match="started with other settings: num_envs"):
            folder.write_settings({"a": {"num_envs": 64, "steps": 20}})


def test_two_grids_do_not_share_a_folder(tmp_path):
    with GridFolder(tmp_path).hold(), pytest.raises(Exception, match="another grid"):
        with GridFolder(tmp_path).hold():
            pass


def test_records_are_collected_in_the_studys_order(tmp_path):
    folder = GridFolder(tmp_path)
    records = Path(__file__).parents[2] / "studies/laptop.jsonl"
    record = json.loads(records.read_text().splitlines()[0])
    with folder.hold():
        for name in ("b", "a"):
            folder.write_result(name, {"key": None, "record": {**record, "run": name}})
        asked = Asked.of(record["settings"], {})
        assert folder.collect(dict.fromkeys(("a", "missing", "b"), asked)) == 2
    lines = folder.records.read_text().splitlines()
    assert [json.loads(line)["run"] for line in lines] == ["a", "b"]
