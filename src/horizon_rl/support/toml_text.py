"""TOML texts, and the line at fault where one of them is wrong."""

import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from horizon_rl.support.errors import InputError
from horizon_rl.support.records import FieldError


@contextmanager
def toml_tables(text: str, source: str) -> Iterator[dict[str, Any]]:
    """Parse a text; what is refused within is blamed on file `source` and the line."""
    try:
        yield tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{source}: not valid TOML: {error}") from error
    except FieldError as error:
        # A quoted key counts as its parts, as `find_line` splits it.
        keys = tuple(".".join(error.path).split("."))
        raise InputError(f"{source}:{find_line(text, keys)}: {error}") from error


def find_line(text: str, keys: tuple[str, ...]) -> int:
    """Return the line (from 1) that defines `keys`, or their nearest parent there is.

    tomllib keeps no line numbers. This reads only headers and the first key of a
    line, which is enough to point at a line; it decides nothing.
    """
    best_line, best_depth, table = 1, 0, ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[\[?([^\[\]]+)\]\]?\s*(#.*)?$", line):
            table = found = _split_keys(header[1])
        elif assignment := re.match(r"\s*([^=#]+?)\s*=", line):
            found = (*table, *_split_keys(assignment[1]))
        else:
            continue
        depth = len(found)
        if found == keys[:depth] and depth > best_depth:
            best_line, best_depth = number, depth
    return best_line


def _split_keys(dotted: str) -> tuple[str, ...]:
    return tuple(key.strip().strip("\"'") for key in dotted.split("."))
