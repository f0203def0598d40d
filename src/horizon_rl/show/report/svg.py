"""A figure as SVG that can stand within a page.

matplotlib writes for a file of its own: ids that two figures would share, a style sheet
that would reach the whole page, and style attributes, which a page that trusts only its
own style sheet must not have. All three are rewritten; the page's style sheet then
colours ink and paper, so that one figure serves light, dark and print.
"""

import io
import re
from typing import Any
from xml.sax.saxutils import quoteattr

from horizon_rl.support.printable import printable

PIXELS = 92.0
"""Pixels of an inch: a figure's text of 10 points is then as large as a table's."""
WIDE = 8.0
"""Width in inches beyond which a figure scrolls on a phone instead of shrinking."""
FAMILY = "system-ui, 'DejaVu Sans', sans-serif"
FONT = re.compile(r"(?:(?P<weight>bold|[1-9]00) )?(?P<size>[\d.]+px) ")


def figure_svg(figure: Any, name: str, about: str) -> str:
    """Return a figure as an element `svg`, all ids of it beginning with its name."""
    from matplotlib import rc_context

    buffer = io.StringIO()
    # Text stays text: it can be searched and read aloud, and takes less room. No date
    # and no random ids inside: the same run gives the same page.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "horizon"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    drawn = printable(buffer.getvalue()).partition("<svg")[2]
    view = re.search(r'viewBox="[^"]*"', drawn)
    assert view is not None
    body = re.sub(r"(?s)<(metadata|style).*?</\1>", "", drawn.partition(">")[2])
    # Tags alone: whatever the text of a figure says stays as it is.
    body = re.sub(r"<[^>]*>", lambda tag: _clean(tag[0], name), body)
    wide = ' class="wide"' if figure.get_figwidth() > WIDE else ""
    # The height follows from the width, also where that is less.
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" '
        f'width="{PIXELS * figure.get_figwidth():.0f}" {view[0]} '
        f'font-family="{FAMILY}" stroke-linejoin="round" role="img" '
        f"aria-label={quoteattr(printable(about))}{wide}>{body}"
    )


def figure_png(figure: Any) -> bytes:
    """Return a figure as PNG."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    return buffer.getvalue()


def _clean(tag: str, name: str) -> str:
    tag = re.sub(r' id="\w+_\d+"', "", tag)  # Groups that nothing refers to.
    tag = re.sub(r' id="([^"]*)"', rf' id="{name}-\1"', tag)
    tag = re.sub(r' (?:xlink:)?href="#', f' href="#{name}-', tag)
    tag = tag.replace("url(#", f"url(#{name}-")
    return re.sub(r' style="([^"]*)"', lambda found: _attributes(found[1]), tag)


def _attributes(style: str) -> str:
    """Turn declarations of a style attribute into attributes of their own."""
    found = {}
    for declaration in filter(None, map(str.strip, style.split(";"))):
        key, _, value = (part.strip() for part in declaration.partition(":"))
        if key != "font":
            found[key] = value
        elif font := FONT.match(value):
            found["font-size"] = font["size"]
            found |= {"font-weight": font["weight"]} if font["weight"] else {}
    return "".join(f' {key}="{value}"' for key, value in found.items())
