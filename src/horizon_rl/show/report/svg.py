"""A figure as SVG that can stand within a page.

matplotlib writes for a file of its own: ids that two figures would share, a style sheet
that would reach the whole page, and style attributes, which a page that trusts only its
own style sheet must not have. All three are rewritten; the page's style sheet then
colours ink and paper, so that one figure serves light, dark and print.
"""

import io
import re
from typing import Any
from xml.etree import ElementTree

SVG, LINK = "http://www.w3.org/2000/svg", "{http://www.w3.org/1999/xlink}href"
PIXELS = 92.0
"""Pixels of an inch: a figure's text of 10 points is then as large as a table's."""
WIDE = 8.0
"""Width in inches beyond which a figure scrolls on a phone instead of shrinking."""
FAMILY = "system-ui, 'DejaVu Sans', sans-serif"
FONT = re.compile(r"(?:(?P<weight>bold|[1-9]00) )?(?P<size>[\d.]+px) ")
UNWANTED = ("metadata", "style")
ElementTree.register_namespace("", SVG)


def figure_svg(figure: Any, name: str, about: str) -> str:
    """Return a figure as an element `svg`, all ids of it beginning with its name."""
    from matplotlib import rc_context

    buffer = io.BytesIO()
    # Text stays text: it can be searched and read aloud, and takes less room. No date
    # and no random ids inside: the same run gives the same page.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "horizon"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    # It fits now, and need not be fitted again for another format.
    figure.set_layout_engine("none")
    root = ElementTree.fromstring(buffer.getvalue())
    _clean(root, name)
    del root.attrib["height"]  # It follows from the width, also where that is less.
    root.attrib |= {
        "width": f"{PIXELS * figure.get_figwidth():.0f}",
        "font-family": FAMILY,
        "stroke-linejoin": "round",
        "role": "img",
        "aria-label": about,
    }
    if figure.get_figwidth() > WIDE:
        root.set("class", "wide")
    return ElementTree.tostring(root, "unicode")


def figure_png(figure: Any) -> bytes:
    """Return a figure as PNG."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    return buffer.getvalue()


def _clean(root: ElementTree.Element, name: str) -> None:
    used = set(re.findall(r"#([\w.-]+)", _references(root)))
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.rpartition("}")[2] in UNWANTED:
                parent.remove(child)
    for element in root.iter():
        if (own := element.attrib.pop("id", None)) in used:
            element.set("id", f"{name}-{own}")
        for key, value in _presentation(element.attrib.pop("style", "")).items():
            element.set(key, value)
        if (target := element.attrib.pop(LINK, None)) is not None:
            element.set("href", target.replace("#", f"#{name}-", 1))
        for key, value in element.attrib.items():
            element.set(key, value.replace("url(#", f"url(#{name}-"))


def _references(root: ElementTree.Element) -> str:
    values = (v for e in root.iter() for k, v in e.attrib.items() if k != "id")
    return " ".join(v for v in values if v.startswith("#") or "url(#" in v)


def _presentation(style: str) -> dict[str, str]:
    """Turn declarations of a style attribute into attributes of their own."""
    found = {}
    for declaration in filter(None, map(str.strip, style.split(";"))):
        key, _, value = (part.strip() for part in declaration.partition(":"))
        if key != "font":
            found[key] = value
        elif font := FONT.match(value):
            found["font-size"] = font["size"]
            found |= {"font-weight": font["weight"]} if font["weight"] else {}
    return found
