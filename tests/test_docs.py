"""What the docs show is run: commands, code, links, flags."""

import contextlib
import io
import pkgutil
import re
import shlex
from dataclasses import asdict
from functools import cache
from pathlib import Path

import pytest

from horizon_rl.cli import COMMANDS, main
from horizon_rl.curriculum import AdrCfg, DoraemonCfg, LeapCfg, PlrCfg
from horizon_rl.domains import shipped_catalogue
from horizon_rl.domains.catalogue import OPTIONAL_GROUPS
from horizon_rl.support.errors import InputError

ROOT = Path(__file__).parent.parent
GUIDES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
PAGES = [*GUIDES, ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/*/*.md"))]

SMALLER = {
    "rehearse": ("--curriculum.max-phases", "6", "--seeds", "1"),
    "train": ("--steps", "1"),
    "play": ("--size", "160x90"),
}
"""Flags that let a command end sooner than the docs' readers see it end."""

FOREIGN_FLAGS = {
    "--block": "ray",
    "--cpus-per-task": "sbatch",
    "--exclude": "srun",
    "--generate": "ray",
    "--gpus-per-task": "sbatch",
    "--head": "ray",
    "--nodes": "sbatch",
    "--ntasks": "srun",
    "--ntasks-per-node": "sbatch",
    "--overlap": "srun",
    "--port": "ray",
    "--logdir": "tensorboard",
    "--each": "tests.campaign",
    "--no-deps": "pip",
    "--nproc-per-node": "torchrun",
    "--rm": "docker",
    "--shutdown-timeout": "torchrun",
}
FOREIGN_NAMES = {"None", "SeedSequence", "replace"}
FOREIGN_NAMES |= {
    "AutoresetMode",
    "Box",
    "Dockerfile",
    "TimeLimit",
    "VecEnv",
    "make",
    "make_vec",
    "reset",
}
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9.-]*")

NOT_PLAIN = re.compile(
    r"\b(hangs? on|anew|foret(?:ell|old|ells)|though they be|who is ill|"
    r"holds? its tongue|mend(?:s|ed)?|be it|of its own accord|makes? bold)\b",
    re.IGNORECASE,
)
"""Words for which engineers have plainer ones: depends on, again, predict, fix."""


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def shell_lines(page: Path, language: str) -> list[str]:
    lines = (line for block in blocks(page, language) for line in block.splitlines())
    # Only what follows a space is a comment to a shell: ood:mass#1 is a word.
    return [re.split(r"(?:^|\s)#", line)[0].strip() for line in lines]


def commands() -> list[str]:
    shown = (line for page in GUIDES for line in shell_lines(page, "sh"))
    return sorted({line for line in shown if line.startswith("horizon ")})


def needs_gl():
    from horizon_rl.robots.picture import choose_gl

    try:
        choose_gl()
    except InputError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def results_cache(tmp_path_factory):
    """Where evaluations of all commands are kept: `stand` runs once for each suite."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize("command", commands())
def test_every_command_in_the_docs_works(
    command, tmp_path, monkeypatch, capsys, results_cache, request
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HORIZON_CACHE", str(results_cache))
    toml = next(b for b in blocks(ROOT / "docs/domains.md", "toml"))
    (tmp_path / "mine.toml").write_text(toml)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    name, *flags = shlex.split(command)[1:]
    if {"--video", "--picture"} & set(flags):
        needs_gl()
        monkeypatch.setattr("horizon_rl.viewer.montage.PACE_S", 0.1)
    if shorter := {"eval": "short_evaluations", "export": "short_exports"}.get(name):
        request.getfixturevalue(shorter)
    shorter = SMALLER.get(name, ())
    if not {*shorter[:1]} & set(flags):
        flags += shorter
    try:
        assert main([name, *flags]) == 0
    except SystemExit as exit_:  # --help
        assert exit_.code == 0
    assert capsys.readouterr().out


def help_of(*command: str) -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
        main([*command, "--help-all"])
    return text.getvalue()


@cache
def flags_of(command: str) -> frozenset[str]:
    """Return the flags that the help of `horizon COMMAND` names."""
    pytest.importorskip("mujoco", reason="needs the extra train")
    text = help_of(command)
    if command == "bench":  # It has commands of its own.
        (kinds,) = re.findall(r"usage: .*\{([\w,]+)\}", text)
        text = "\n".join(help_of("bench", kind) for kind in kinds.split(","))
    return frozenset(FLAG.findall(text))


def example_flags() -> set[str]:
    """Return the flags of the programs in examples/ and benchmarks/."""
    programs = [*ROOT.glob("examples/*.py"), *ROOT.glob("benchmarks/*.py")]
    text = "\n".join(program.read_text() for program in programs)
    return set(re.findall(r'"(--[a-z-]+)"', text))


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_command_shown_has_its_flags(page, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for line in shell_lines(page, "(?:sh|bash)"):
        shown = re.search(r"(?:^|[\s_])(?:horizon|horizon_rl) (\w+)( .*)?$", line)
        if shown and shown[1] in COMMANDS:
            unknown = {*FLAG.findall(shown[2] or "")} - flags_of(shown[1])
            assert not unknown, f"{page.name}: {line}"


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_flag_named_exists(page, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    known = example_flags().union(FOREIGN_FLAGS, *(flags_of(name) for name in COMMANDS))
    for flag in FLAG.findall(page.read_text()):
        family = flag.rstrip(".")  # `--curriculum...` stands for all that begin so.
        assert flag in known or any(x.startswith(f"{family}.") for x in known), flag


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_module_and_file_named_exists(page):
    pytest.importorskip("mujoco")
    # What the changelog names may be what was.
    text = page.read_text() if page.name != "CHANGELOG.md" else ""
    for name in set(re.findall(r"\bhorizon_rl(?:\.\w+)+", text)):
        if not (ROOT / "src" / name.replace(".", "/")).is_dir():
            assert pkgutil.resolve_name(name), name
    for path in set(re.findall(r"`((?:\w+/)+\w+\.(?:py|toml|xml))`", text)):
        homes = (ROOT, ROOT / "src", ROOT / "src/horizon_rl")
        assert any((home / path).exists() for home in homes), path


@cache
def defined_names() -> frozenset[str]:
    files = [*ROOT.glob("src/**/*.py"), *ROOT.glob("examples/*.py")]
    text = "\n".join(file.read_text() for file in files)
    return frozenset(re.findall(r"\b(?:def|class) (\w+)", text))


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_function_and_class_named_is_defined(page):
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    if page.name == "CHANGELOG.md":  # It names what was, too.
        return
    called = re.findall(r"`(?:\w+\.)*(\w+)\([^`\n]*`", prose)
    classes = re.findall(r"`([A-Z][a-z]+\w*)(?:\.\w+)?`", prose)
    missing = {*called, *classes} - defined_names() - FOREIGN_NAMES
    assert not missing, missing


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_import_shown_works(page):
    pytest.importorskip("mujoco")
    shown = re.compile(r"^from horizon_rl\S* import (?:\([^)]*\)|.*)$", re.M)
    for block in blocks(page, "python"):
        for line in shown.findall(block):
            exec(line, {})


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_pages_are_in_plain_english(page):
    found = [match[0] for match in NOT_PLAIN.finditer(page.read_text())]
    assert not found, f"{page.name}: {found}"


def test_training_loop_in_the_readme_runs_and_reaches_the_limits():
    (code,) = [b for b in blocks(ROOT / "README.md", "python") if "ask()" in b]
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


def test_python_in_the_docs_runs(results_cache, monkeypatch):
    pytest.importorskip("mujoco")
    monkeypatch.setenv("HORIZON_CACHE", str(results_cache))
    world: dict = {}
    for code in blocks(ROOT / "docs/python.md", "python"):
        exec(code, world)
    assert world["obs"].shape == (16, 45) and list(world["result"].success) == ["none"]


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


def test_the_effect_that_own_domain_shows_is_the_example():
    (shown,) = blocks(ROOT / "docs/own-domain.md", "python")
    example = (ROOT / "examples/payload.py").read_text().splitlines()
    assert not [x for x in shown.splitlines() if x not in example and "..." not in x]


def test_the_table_of_shipped_groups_is_that_of_the_catalogue():
    page = (ROOT / "docs/extended.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+\.\w+)`[^|]*\| [^|]+\| ([^|]+) \|", page, re.M))
    for name, parameter in shipped_catalogue("extended").parameters.items():
        if name.partition(".")[0] in OPTIONAL_GROUPS:
            low, high = parameter.limit.low, parameter.limit.high
            symmetric = low == -high
            assert rows[name] == (f"±{high:g}" if symmetric else f"{low:g}..{high:g}")


def test_the_table_of_the_governors_settings_is_that_of_the_code():
    page = (ROOT / "docs/curriculum.md").read_text()
    governor = page.split("## The governor")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", governor, re.M))
    words = {True: "yes", False: "no"}
    for name, value in asdict(LeapCfg()).items():
        values = value if isinstance(value, tuple) else (value,)
        shown = (words[x] if isinstance(x, bool) else f"{x:g}" for x in values)
        assert rows.pop(name) == ", ".join(shown), name
    assert not rows


@pytest.mark.parametrize(
    ("title", "cfg"),
    [("ADR", AdrCfg()), ("DORAEMON", DoraemonCfg()), ("PLR", PlrCfg())],
)
def test_the_table_of_a_peers_settings_is_that_of_the_code(title, cfg):
    page = (ROOT / "docs/curriculum.md").read_text()
    section = page.split(f"### {title}\n")[1].split("\n### ")[0].split("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", section, re.M))
    known = {k: v if isinstance(v, str) else f"{v:g}" for k, v in asdict(cfg).items()}
    assert rows == known


def test_the_table_of_presets_is_that_of_the_code():
    pytest.importorskip("mujoco")
    from horizon_rl.training.presets import PRESETS, preset_cfg, preset_policy

    page = (ROOT / "docs/training.md").read_text()
    rows = dict(re.findall(r"^\| ([^|`]+?) \| (.+) \|$", page, re.M))
    for place, name in enumerate(PRESETS):
        cfg = preset_cfg(name, preset_policy(name))
        probe = f"{cfg.probe_scenarios}, {cfg.probe_scenarios}, {cfg.anchor_scenarios}"
        looks = "at " + " and ".join(map(str, cfg.early.looks))
        for row, value in {
            "worlds": str(cfg.num_envs),
            "iterations a phase, of 24 steps": str(cfg.phase_iterations),
            "window of gate L, episodes": str(cfg.window),
            "probe: checkpoint, candidate, anchor": probe,
            "early looks": looks if cfg.early.looks else "none",
        }.items():
            assert rows[row].split(" | ")[place] == value, (name, row)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_nothing_says_to_install_the_package_from_an_index():
    """It is on none: a clone or the repository's address are the ways."""
    examples = [p for p in (ROOT / "examples").iterdir() if p.is_file()]
    for page in [*PAGES, *examples]:
        for line in page.read_text().splitlines():
            if re.search(r"pip install.*\bhorizon[-_]rl\b", line):
                assert "git+" in line, f"{page.name}: {line}"
