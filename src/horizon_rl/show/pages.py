"""Tables of Markdown pages that are filled from collected records.

    <!-- records: studies/core.jsonl success severity=0.5 cells=horizon_* -->
    ...
    <!-- end of records -->

What stands between the two lines is generated: no number of it is typed by hand, and a
test checks that every page is what its records make of it.
"""

import re
from dataclasses import fields
from pathlib import Path

from horizon_rl.grid.folder import read_collected
from horizon_rl.show.record_tables import KINDS, Choice
from horizon_rl.show.table import to_markdown
from horizon_rl.support.errors import InputError, unknown
from horizon_rl.support.records import decode

BLOCK = re.compile(
    r"^(<!-- records: (?P<words>[^\n]*?) -->\n).*?^(<!-- end of records -->)",
    re.DOTALL | re.MULTILINE,
)
NUMBERS = ("severity", "mark")


def fill_page(text: str, root: Path, source: str = "page") -> str:
    """Return a page with all its blocks filled.

    Args:
        text: The page.
        root: Folder that the names of records start from.
        source: What to call the page in complaints.
    """

    def fill(block: re.Match[str]) -> str:
        try:
            return f"{block[1]}\n{_fill(block['words'].split(), root)}\n{block[3]}"
        except InputError as error:
            raise InputError(f"{source}: '{block['words']}': {error}") from error

    return BLOCK.sub(fill, text)


def _fill(words: list[str], root: Path) -> str:
    if len(words) < 2:
        raise InputError("accepted: FILE.jsonl KIND key=value ...")
    file, kind, *pairs = words
    if kind not in KINDS:
        raise InputError(unknown("kind of table", kind, KINDS))
    given = {key: value for key, _, value in (pair.partition("=") for pair in pairs)}
    known = [field.name for field in fields(Choice)]
    for key in given:
        if key not in known:
            raise InputError(unknown("key", key, known))
    try:
        values = {k: float(v) if k in NUMBERS else v for k, v in given.items()}
    except ValueError as error:
        raise InputError(str(error)) from error
    tables = KINDS[kind](read_collected(root / file), decode(Choice, values))
    return "\n".join(map(to_markdown, tables))
