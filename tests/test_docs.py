"""What the docs show is run: commands, code, links."""

import re
import shlex
from pathlib import Path

import pytest

from horizon_rl.cli import main
from horizon_rl.domains import shipped_catalogue
from horizon_rl.support.errors import InputError

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def commands() -> list[str]:
    lines = (
        line
        for page in PAGES
        for block in blocks(page, "sh")
        for line in block.splitlines()
    )
    # Only what follows a space is a comment to a shell: ood:mass#1 is a word.
    shown = (re.split(r"(?:^|\s)#", line)[0].strip() for line in lines)
    return sorted({line for line in shown if line.startswith("horizon ")})


def needs_gl():
    from horizon_rl.robots.picture import choose_gl

    try:
        choose_gl()
    except InputError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("command", commands())
def test_every_command_in_the_docs_works(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    toml = next(b for b in blocks(ROOT / "docs/domains.md", "toml"))
    (tmp_path / "mine.toml").write_text(toml)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    args = shlex.split(command)[1:]
    if {"--video", "--picture"} & set(args):
        needs_gl()
    try:
        assert main(args) == 0
    except SystemExit as exit_:  # --help
        assert exit_.code == 0
    assert capsys.readouterr().out


def test_training_loop_in_the_readme_runs_and_reaches_the_limits():
    (code,) = blocks(ROOT / "README.md", "python")
    phases, saved = [], []
    same = {"error": 0.2, "return": 20.0}
    world = {
        "train_one_phase": lambda ranges: phases.append(ranges) or (0.95, 0.2),
        "probe": lambda ranges: {
            "checkpoint_error": same["error"],
            "reference_error": same["error"],
            "checkpoint_return": same["return"],
            "reference_return": same["return"],
        },
        "save": lambda: saved.append(len(phases)),
        "restore": lambda: pytest.fail("nothing failed"),
    }
    exec(code, world)
    assert len(saved) == len(phases) == 17  # Phase 0, then 8 levels in two groups.
    assert phases[-1]["com.offset"].high == 0.3


def test_task_example_in_the_docs_runs():
    pytest.importorskip("mujoco")
    (code,) = blocks(ROOT / "docs/task.md", "python")
    world: dict = {}
    exec(code, world)
    assert len(world["episodes"]) == 16


def test_robots_example_in_the_docs_runs():
    pytest.importorskip("mujoco")
    (code,) = blocks(ROOT / "docs/robots.md", "python")[:1]
    world: dict = {}
    exec(code, world)
    assert len(world["robots"]) == 10


def test_sampling_example_in_the_docs_runs():
    (code,) = blocks(ROOT / "docs/domains.md", "python")
    world: dict = {}
    exec(code, world)
    assert world["instances"]["com.offset"].shape == (1024, 3)


def test_the_catalogue_that_own_domain_shows_is_the_example():
    (shown,) = blocks(ROOT / "docs/own-domain.md", "toml")
    assert shown in (ROOT / "examples/payload.toml").read_text()


def test_the_table_of_shipped_groups_is_that_of_the_catalogue():
    page = (ROOT / "docs/own-domain.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+\.\w+)`[^|]*\| [^|]+\| ([^|]+) \|", page, re.M))
    for name, parameter in shipped_catalogue("extended").parameters.items():
        if name.startswith(("latency.", "sensing.")):
            low, high = parameter.limit.low, parameter.limit.high
            symmetric = low == -high
            assert rows[name] == (f"±{high:g}" if symmetric else f"{low:g}..{high:g}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
