"""HTML as nested calls: text is escaped, and only what a tag made is taken as HTML."""

from collections.abc import Iterable
from html import escape

VOID = frozenset({"br", "link", "meta"})


class Html(str):
    """Text that is HTML already. Whatever is not gets escaped."""


def tag(name: str, /, *children: str | None, **attributes: str | bool | None) -> Html:
    """Write an element; None and False leave a child or an attribute out.

    >>> tag("p", "a < b", tag("b", "c"), class_="note")
    '<p class="note">a &lt; b<b>c</b></p>'
    """
    given = "".join(
        f" {_attribute(key)}"
        if value is True
        else f' {_attribute(key)}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in VOID:
        return Html(f"<{name}{given}>")
    return Html(f"<{name}{given}>{join(children)}</{name}>")


def join(children: Iterable[str | None]) -> Html:
    """Put pieces of a page one after the other."""
    known = (child for child in children if child is not None)
    return Html("".join(c if isinstance(c, Html) else escape(c) for c in known))


def _attribute(key: str) -> str:
    """Turn a Python name into an attribute's: class_, aria_label, http_equiv."""
    return key.rstrip("_").replace("_", "-")
