"""Completion, as a shell asks for it."""

import shutil
import subprocess

import pytest

from horizon_rl.cli import COMMANDS, main
from horizon_rl.cli.completion import read_flags


@pytest.fixture
def complete(capsys, tmp_path):
    """Return what bash offers after some words."""
    if not shutil.which("bash"):
        pytest.skip("there is no bash")
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out)

    def ask(*words: str) -> set[str]:
        code = f"source {script}; COMP_WORDS=({' '.join(words)}); "
        code += f"COMP_CWORD={len(words) - 1}; _horizon; echo ${{COMPREPLY[@]}}"
        done = subprocess.run(["bash", "-c", code], capture_output=True, text=True)
        assert done.stderr == ""
        return set(done.stdout.split())

    return ask


def test_commands_and_their_flags_are_offered(complete):
    assert complete("horizon", "st") == {"status", "study"}
    assert complete("horizon", "''") == set(COMMANDS)
    assert complete("horizon", "eval", "--sev") == {"--severity"}
    # Also those that only --help-all shows.
    assert "--learner.ppo.lam" in complete("horizon", "train", "--learner.ppo.la")
    assert complete("horizon", "status", "--sev") == set()
    # No flag that is only spoken of, be it another command's.
    assert complete("horizon", "models", "--in") == set()
    assert complete("horizon", "play", "--pic") == {"--picture"}


def test_flags_are_the_same_in_a_wide_terminal(monkeypatch):
    flags = read_flags()
    assert {"--leap.ready", "--learner.ppo.no-clip-value-loss"} < set(flags["train"])
    monkeypatch.setenv("COLUMNS", "200")
    assert read_flags() == flags


@pytest.mark.parametrize(
    ("shell", "first"), [("zsh", "autoload"), ("fish", "complete")]
)
def test_other_shells_have_scripts(shell, first, capsys):
    assert main(["completion", shell]) == 0
    out = capsys.readouterr().out
    assert out.startswith(first) and "severity" in out
