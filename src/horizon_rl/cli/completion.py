"""`horizon completion`: what a shell needs to complete commands and flags."""

import os
import re
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO
from itertools import chain
from typing import Annotated, Literal

import tyro

FLAGS = re.compile(r"^\W{2}(?:-h, )?(--[a-z][\w.-]*)(?:, (--[\w.-]*))?", re.M)
"""Where a line of the help begins: those in sentences may be another command's."""

BASH = """\
_horizon() {{
  local words="{commands}"
  case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  [ "$COMP_CWORD" -gt 1 ] || words="{commands}"
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _horizon horizon
"""
ZSH = (
    "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"
)


@dataclass(frozen=True, kw_only=True)
class CompletionCmd:
    """Print a script that completes commands and flags: eval "$(horizon completion bash)"."""

    shell: Annotated[
        Literal["bash", "zsh", "fish"],
        tyro.conf.Positional,
        tyro.conf.arg(help_behavior_hint=""),
    ]
    """The shell: bash, zsh or fish (there: horizon completion fish | source)."""


def run(cmd: CompletionCmd) -> None:
    flags = read_flags()
    if cmd.shell == "fish":
        for name, own in flags.items():
            print(f"complete -c horizon -n __fish_use_subcommand -xa {name}")
            for flag in own:
                seen = f"'__fish_seen_subcommand_from {name}'"
                print(f"complete -c horizon -n {seen} -l {flag.removeprefix('--')}")
        return
    cases = "\n".join(
        f'    {name}) words="{" ".join(own)}" ;;' for name, own in flags.items()
    )
    script = BASH.format(commands=" ".join(flags), cases=cases)
    print((ZSH if cmd.shell == "zsh" else "") + script, end="")


def read_flags() -> dict[str, list[str]]:
    """Return every command's flags, as its help names them."""
    from horizon_rl.cli import COMMANDS, main

    found, before = {}, dict(os.environ)
    # In a wide terminal the help has several flags a line.
    os.environ["COLUMNS"] = "80"
    try:
        for name in COMMANDS:
            text = StringIO()
            with redirect_stdout(text), suppress(SystemExit):
                main([name, "--help-all"])
            found[name] = [*filter(None, chain(*FLAGS.findall(text.getvalue())))]
    finally:
        os.environ.clear()
        os.environ.update(before)
    return found
