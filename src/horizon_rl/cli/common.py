"""What several commands share."""

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any
from warnings import warn

import numpy as np
import tyro
from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from horizon_rl.curriculum import Method, MethodCfgs
from horizon_rl.curriculum.methods import find_unread
from horizon_rl.domains import Catalogue, load_catalogue, paper_catalogue
from horizon_rl.policies.shipped import STAND, model_names
from horizon_rl.runs.find import spell_out
from horizon_rl.show.table import Table, print_table, to_markdown
from horizon_rl.support.durable import write_file
from horizon_rl.support.errors import InputError
from horizon_rl.support.printable import printable
from horizon_rl.support.records import encode, flatten

FAR_POSE_RAD = 0.25
"""From which a thigh or calf is in another pose than the trained one."""

CatalogueFlag = Annotated[
    Path | None,
    tyro.conf.arg(
        metavar="NAME|FILE",
        help="Catalogue: `extended`, which adds joint friction, late actions and more, or a TOML "
        "file of your own; without it, the paper's seven groups.",
    ),
]
"""Option of every command that takes a catalogue."""

RunArgument = Annotated[
    str | None,
    tyro.conf.Positional,
    tyro.conf.arg(
        metavar="[RUN]",
        help_behavior_hint="",
        help="Directory of a training run or rehearsal, its name in `horizon runs`, its "
        "journal, or a shipped policy with a run of its own; without it, the run under "
        "logs/ that was last written to.",
    ),
]
"""Argument of the commands that show one run."""


def read_catalogue(source: Path | None) -> Catalogue:
    """Load the catalogue of that name or file, or the paper's where none is given."""
    return load_catalogue(source) if source else paper_catalogue()


def split_name(text: str) -> tuple[str | None, str]:
    """Split NAME=SOURCE, where a file may itself have such a name: lr=1.onnx.

    Runs under logs/ have their short names spelt out.
    """
    known = *model_names(), STAND
    named, whole = re.fullmatch(r"([\w.+-]+)=(.+)", text), spell_out(text, known)
    is_file = Path(whole).exists() or Path(text.rpartition(":")[0]).is_file()
    if named and not is_file:
        return named[1], spell_out(named[2], known)
    return None, whole


def check_outputs(figures: Path | None, json: Path | None) -> None:
    """Refuse places that nothing can be written to before the long work begins."""
    if figures and figures.exists() and not figures.is_dir():
        raise InputError(f"--figures {figures}: a file, not a folder")
    if json:
        check_file("--json", json)


def check_file(flag: str, path: Path, suffix: str = "") -> None:
    """Refuse a place where no file can be, or not one with that suffix."""
    if suffix and path.suffix.lower() != suffix:
        raise InputError(f"{flag} {path}: the name must end in {suffix}")
    if not path.parent.is_dir():
        raise InputError(f"{flag} {path}: no folder {path.parent}")
    if path.is_dir():
        raise InputError(f"{flag} {path}: a folder, not a file")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{flag} {path}: {path.parent} cannot be written to")


class Terminal(Console):
    """A console for words of others: it obeys none of them.

    A reader who stops reading is left to `main`.
    """

    def __init__(self, **options: Any):
        super().__init__(markup=False, emoji=False, **options)

    def render(
        self, renderable: Any, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Render for the terminal; what is no control of rich's own is made printable."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield segment._replace(text=printable(segment.text))

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError

    def print_table(self, table: Table) -> None:
        print_table(self, table)

    def print_tables(self, tables: Iterable[Table], *, markdown: bool) -> None:
        """Print tables for a reader, or for a page."""
        if markdown:
            print(printable("\n".join(map(to_markdown, tables))), end="")
            return
        for table in tables:
            print_table(self, table)


def warn_of_pose(robot: str | None, policies: Iterable[str]) -> None:
    """Say where a file's pose is far from that in which shipped policies were trained."""
    named = [source for _, source in map(split_name, policies)]
    if not robot or not Path(robot).suffix or not set(named) & set(model_names()):
        return
    from horizon_rl.robots import REFERENCE, load_robot

    legs, usual = (
        # A knee may bend the other way.
        np.abs(load_robot(name).default_pose_rad.reshape(4, 3)[:, 1:])
        for name in (robot, REFERENCE)
    )
    if np.abs(legs - usual).max() > FAR_POSE_RAD:
        (thigh, calf), (own_thigh, own_calf) = usual.mean(axis=0), legs.mean(axis=0)
        warn(
            f"{robot} stands with thigh {own_thigh:.2f} and calf {own_calf:.2f} rad; "
            f"shipped policies were trained near {thigh:.2f} and {calf:.2f}, and track "
            "worse from another pose: change its keyframe, or train on it",
            stacklevel=1,
        )


def warn_of_unread(name: str, method: Method, settings: MethodCfgs) -> None:
    """Say which settings of other methods were changed, which changes nothing."""
    flags = [f"--{each.replace('_', '-')}" for each in find_unread(method, settings)]
    if flags:
        warn(f"method {name} does not read {', '.join(flags)}", stacklevel=1)


def say(text: str = "", **options: Any) -> None:
    """Print text from outside, its control characters written out."""
    print(printable(text), **options)


def print_json(data: Any) -> None:
    json.dump(data, sys.stdout, indent=2, allow_nan=False)
    print()


def write_json(path: Path, data: Any, what: str = "numbers") -> None:
    """Write a file, and say where it is."""
    write_file(path, f"{json.dumps(data, indent=2, allow_nan=False)}\n".encode())
    say(f"{what} in {path}")


def refuse_changes(
    given: Any, default: Any, recorded: Any, allowed: Sequence[str] = ()
) -> None:
    """Refuse settings that differ from a resumed run's, unless they are just defaults.

    Args:
        given: The settings as parsed.
        default: What they are where a flag is left out.
        recorded: What the run was started with.
        allowed: Settings that may change.
    """
    was, usual = flatten(encode(recorded)), flatten(encode(default))
    changed = [
        f"--{key.replace('_', '-')} (is {was.get(key)})"
        for key, value in flatten(encode(given)).items()
        if value not in (usual.get(key), was.get(key)) and key not in allowed
    ]
    if changed:
        raise InputError(
            f"a resumed run keeps its settings; leave out {', '.join(changed)}"
        )
