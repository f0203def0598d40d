"""The `horizon` command: parsing and wiring only."""

import os
import sys
import warnings
from typing import Annotated

import tyro

from horizon_rl import __version__
from horizon_rl.cli import bench, domains, rehearse, robots
from horizon_rl.errors import InputError

RUN = {
    bench.BenchCmd: bench.run,
    domains.DomainsCmd: domains.run,
    rehearse.RehearseCmd: rehearse.run,
    robots.RobotsCmd: robots.run,
}

Command = (
    Annotated[rehearse.RehearseCmd, tyro.conf.subcommand("rehearse")]
    | Annotated[domains.DomainsCmd, tyro.conf.subcommand("domains")]
    | Annotated[robots.RobotsCmd, tyro.conf.subcommand("robots")]
    | Annotated[bench.BenchCmd, tyro.conf.subcommand("bench")]
)


def main(args: list[str] | None = None) -> int:
    """Run the command line `args`; returns the exit code, 2 for bad input."""
    args = sys.argv[1:] if args is None else args
    if args == ["--version"]:
        print(f"horizon-rl {__version__}")
        return 0
    warnings.showwarning = _show_warning
    try:
        cmd = tyro.cli(
            Command,  # pyright: ignore[reportArgumentType]
            prog="horizon",
            description="Recoverability-governed curricula for legged robots.",
            args=args,
            config=(tyro.conf.AvoidSubcommands, tyro.conf.FlagCreatePairsOff),
        )
        RUN[type(cmd)](cmd)
    except InputError as error:
        print(f"horizon: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader (head, less) has seen enough; Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        # A full disk, a directory taken away: the last commit is still intact.
        print(f"horizon: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("horizon: interrupted; what was judged is kept", file=sys.stderr)
        return 130
    return 0


def _show_warning(message, category, filename, lineno, file=None, line=None):
    print(f"horizon: warning: {message}", file=sys.stderr)
