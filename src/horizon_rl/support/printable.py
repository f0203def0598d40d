"""Text of a file or a name, for a terminal: it may be anybody's."""

import re

CONTROL = re.compile(
    # But for line ends and tabs: what moves a cursor, sets a title or a colour ...
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"
    # ... turns the direction of what is read, or is half a character.
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    r"""Write out what a terminal would obey.

    >>> printable("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
