"""The rules of docs/architecture.md: which room knows what."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "horizon_rl"
ROOMS = (
    *("support", "domains", "curriculum", "runs", "robots", "physics", "task"),
    *("learning", "policies", "training", "rehearsal", "evaluation", "grid"),
    *("show", "viewer", "bench", "api", "cli"),
)
"""A room imports only rooms that stand before it."""
NEVER = {
    "runs": {"robots", "physics", "task"},
    "robots": {"domains", "curriculum", "runs"},
    "physics": {"curriculum", "runs"},
    "task": {"curriculum", "runs"},
    "learning": {"curriculum", "runs", "domains", "physics", "robots"},
    "evaluation": {"training"},
    "rehearsal": {"robots", "physics", "task", "learning", "policies"},
    "viewer": {"training", "show"},
}
"""What a room has no business with, although it stands before it."""
FILES = sorted(PACKAGE.rglob("*.py"))
MAX_LINES, MAX_TOTAL = 350, 39_515
"""Of a file, and of all, which is raised knowingly: the aim is 20,500."""


def room_of(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0]


@cache
def parse(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def imports(file: Path) -> set[str]:
    """Name the modules of the package that a file imports, also inside functions."""
    found = set()
    for node in ast.walk(parse(file)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{a.name}" for a in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith("horizon_rl.")}


def constants(file: Path) -> set[str]:
    """Return all texts in a file but its docstrings."""
    tree = parse(file)
    docs = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    texts = (n for n in ast.walk(tree) if isinstance(n, ast.Constant))
    return {n.value for n in texts if isinstance(n.value, str) and id(n) not in docs}


def test_every_room_has_its_place():
    assert {p.parent.name for p in PACKAGE.glob("*/__init__.py")} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_room_imports_only_rooms_before_it(room):
    allowed = {*ROOMS[: ROOMS.index(room) + 1], "__version__"} - NEVER.get(room, set())
    for file in FILES:
        if room_of(file) == room:
            foreign = {name.split(".")[1] for name in imports(file)} - allowed
            assert not foreign, f"{file.name} imports {foreign}"


def test_only_runs_knows_the_names_of_files():
    names = {"journal.jsonl", "metrics.jsonl", "times.jsonl", "budget.json"}
    names |= {"checkpoints", "evidence", "results.json", "films"}
    paths = {"JOURNAL", "CHECKPOINTS", "INITIAL", "EVIDENCE", "METRICS"}
    paths |= {"TIMES", "BUDGET", "RESULTS", "FILMS"}
    for file in FILES:
        if room_of(file) != "runs":
            assert not names & constants(file), file
            assert not {f"horizon_rl.runs.paths.{p}" for p in paths} & imports(file)


def test_every_checkpoint_that_is_read_is_verified():
    raw = "horizon_rl.learning.checkpoint.load_checkpoint"
    readers = [f.relative_to(PACKAGE) for f in FILES if raw in imports(f)]
    assert readers == [Path("policies/learned.py")]


def test_loop_fits_one_screen_and_sees_protocols_only():
    file = PACKAGE / "training" / "loop.py"
    rooms = {".".join(name.split(".")[1:3]) for name in imports(file)}
    seen = {name for name in rooms if not name.startswith(("curriculum", "support"))}
    assert seen == {"runs.directory", "training.protocols"}
    loop = next(
        node
        for node in parse(file).body
        if isinstance(node, ast.FunctionDef) and node.name == "run_phases"
    )
    assert loop.end_lineno and loop.end_lineno - loop.lineno < 60


def test_only_the_curriculum_decides():
    decides = re.compile(r"\b(judge|Decision|Verdict|look_early)\(")
    for file in FILES:
        if room_of(file) != "curriculum" and "studies" not in file.parts:
            assert not decides.search(file.read_text()), file


def test_nobody_asks_what_kind_of_actor_it_is():
    for file in FILES:
        for node in ast.walk(parse(file)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                subject, kinds = map(ast.unparse, node.args)
                asks = subject.endswith("actor") and not kinds.endswith("Cfg")
                assert not asks, f"{file}: {subject}"
                assert not re.search("Actor$|MLPModel", kinds), f"{file}: {kinds}"


def test_no_switch_outside_the_journal_changes_a_number():
    # Graphs and the cache do not change numbers; neither does where files lie.
    harmless = {"HORIZON_GRAPHS", "HORIZON_CACHE"}
    for file in FILES:
        found = {t for t in constants(file) if re.fullmatch("HORIZON_[A-Z0-9_]+", t)}
        assert found <= harmless, f"{file}: {found}"


def test_no_two_classes_of_one_name():
    names = Counter(
        node.name
        for file in FILES
        for node in parse(file).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in names.items() if count > 1} == set()


def test_words_are_plain():
    # As in tests/test_docs.py: depends on, again, predict, fix, session.
    dated = re.compile(
        r"\b(hangs? on|anew|foretells?|though they be|is ill|mend(?:s|ed)?|sittings?)\b"
    )
    for file in FILES:
        assert not dated.findall(file.read_text()), file


def test_files_are_small_and_so_is_the_whole():
    lines = {file: file.read_text().count("\n") for file in FILES}
    assert {str(f): n for f, n in lines.items() if n > MAX_LINES} == {}
    assert sum(lines.values()) <= MAX_TOTAL
