"""What an MJCF file says the size of: refused before MuJoCo allocates it.

MuJoCo takes most sizes as they are, and many while it still reads the file. So they are
looked for in its text, cut into tags as MuJoCo's own reader (tinyxml2) cuts it: a
stricter one would refuse files that MuJoCo takes, `<!-- a -- b -->` for one.
"""

import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from html import unescape
from math import nan, prod
from pathlib import Path
from typing import Any

from horizon_rl.support.errors import InputError, blame

MAX_FILE = 1 << 24
"""Bytes of a file, and of each that it includes; meshes lie elsewhere."""
MAX_ELEMENTS = 10_000
"""Of a file and all that it includes, copies by `count` included."""
MAX_CELLS = 1 << 27
"""Of all height fields, and pixels of all textures: 4096 x 4096, eight times."""
MAX_SIZES = {
    **{f"nuser_{kind}": 1000 for kind in ("body", "jnt", "geom", "site", "cam")},
    **{f"nuser_{kind}": 1000 for kind in ("tendon", "actuator", "sensor")},
    **{"nuserdata": 1_000_000, "nkey": 10_000, "nstack": 10_000_000},
    **{"nconmax": 100_000, "njmax": 100_000, "memory": 1 << 30},
    **{"dim": 1000, "num": 1000, "actdim": 1000, "nsample": 10_000},
    **{"nrow": 1 << 16, "ncol": 1 << 16, "width": 1 << 16, "height": 1 << 16},
    **{"count": MAX_ELEMENTS, "cellcount": 1000, "params": 500},
}
"""Largest numbers, by attribute: their names mean the same in every element."""

NAME = rb"[A-Za-z_:\x80-\xff][-\w:.\x80-\xff]*+"
ATTRIBUTE = re.compile(rb"(%s)\s*=\s*(\"[^\"]*\"|'[^']*')" % NAME)
TAG = re.compile(
    rb"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<!(?!--|\[CDATA\[).*?>"
    rb"|<(?P<end>/?)\s*(?P<name>%s)(?P<attributes>(?:\s*%s)*)\s*(?P<closed>/?)>"
    % (NAME, ATTRIBUTE.pattern),
    re.DOTALL,
)
UNITS = {unit: 1 << 10 * power for power, unit in enumerate("KMGTPE", start=1)}
PNG = b"\x89PNG\r\n\x1a\n"


def check_declared_sizes(file: Path) -> None:
    """Refuse an MJCF file that asks for more than a robot's can need.

    Raises:
        InputError: With the element and what is accepted.
    """
    num_elements = num_cells = 0
    for tag, attributes, copies in _elements(file):
        sizes = {
            name: _numbers(tag, name, attributes[name])
            for name in attributes.keys() & MAX_SIZES.keys()
        }
        num_elements += copies
        num_cells += copies * _num_cells(tag, attributes.get("type"), sizes)
        if num_elements > MAX_ELEMENTS:
            raise InputError(
                f"too many elements, with all copies by 'count'; accepted: "
                f"{MAX_ELEMENTS:,} at most"
            )
        _check_cells(num_cells)


def check_images(spec: Any, folder: Path) -> None:
    """Refuse images that unpack to more than `MAX_CELLS`; `spec` is a read MJCF file."""
    parts = [*spec.textures, *spec.hfields]
    named = ((part.file, *getattr(part, "cubefiles", ())) for part in parts)
    names = {name for group in named for name in group if name}
    folders = {folder / each for each in ("", spec.texturedir, spec.meshdir)}
    files = {_find(each, name) for each in folders for name in names}
    _check_cells(sum(_num_pixels(file) for file in files if file))


def _check_cells(number: int) -> None:
    if number > MAX_CELLS:
        raise InputError(
            f"its height fields or textures have {number:,} cells and pixels; "
            f"accepted: {MAX_CELLS:,} at most"
        )


def _elements(first: Path) -> Iterator[tuple[str, dict[str, str], int]]:
    """Yield tag, attributes and number of copies of all elements, includes' too."""
    files, seen = [(first, 1)], {first.resolve()}
    while files:
        file, times = files.pop()
        copies = [times]
        for ends, tag, attributes, closed in _tags(file):
            if ends:
                # One end too many is MuJoCo's to refuse.
                copies = copies[:-1] or copies
                continue
            here = copies[-1] * prod(_numbers(tag, "count", attributes.get("count")))
            yield tag, attributes, here
            if not closed:
                copies.append(here)
            if tag in ("include", "model") and attributes.get("file"):
                # MuJoCo has looked in one or the other, by its version.
                for folder in (first.parent, file.parent):
                    other = _find(folder, attributes["file"])
                    if other and other not in seen:
                        seen.add(other)
                        files.append((other, here))


def _tags(file: Path) -> Iterator[tuple[bool, str, dict[str, str], bool]]:
    """Yield whether it ends an element, its name, its attributes, and whether it is all."""
    text = _read(file, MAX_FILE + 1)
    if len(text) > MAX_FILE:
        raise InputError(f"{file} is larger than {MAX_FILE >> 20} MB")
    place = text.find(b"<")
    while place >= 0:
        found = TAG.match(text, place)
        if not found:
            line = text.count(b"\n", 0, place) + 1
            raise InputError(f"{file}:{line}: not XML from this tag on")
        if found["name"]:
            pairs = ATTRIBUTE.findall(found["attributes"])
            attributes = {
                key.decode("latin-1"): unescape(value[1:-1].decode("utf-8", "replace"))
                for key, value in pairs
            }
            name = found["name"].decode("latin-1")
            yield bool(found["end"]), name, attributes, bool(found["closed"])
        place = text.find(b"<", found.end())


def _find(folder: Path, name: str) -> Path | None:
    """Return where a file is that another names; None if there is none."""
    # No file can have such a name, or it is a link to itself.
    with suppress(OSError, ValueError, RuntimeError):
        file = (folder / name).resolve()
        return file if file.is_file() else None


def _read(file: Path, num_bytes: int) -> bytes:
    with blame(f"cannot read {file}", OSError), open(file, "rb") as opened:
        return opened.read(num_bytes)


def _numbers(tag: str, name: str, value: str | None) -> list[int]:
    """Read a size, several in a row, or none."""
    limit, numbers = MAX_SIZES[name], []
    for word in (value or "").split():
        unit = UNITS.get(word[-1].upper(), 1) if name == "memory" else 1
        try:
            size = float(word[:-1] if unit > 1 else word) * unit
        except ValueError:
            size = nan
        # NaN fails the comparison too.
        if not size <= limit:
            raise InputError(
                f"<{tag}> has {name}='{word[:40]}'; accepted: numbers up to {limit:,}"
            )
        # None takes back what others ask for.
        numbers.append(int(max(1.0, size)))
    return numbers


def _num_cells(tag: str, kind: str | None, sizes: dict[str, list[int]]) -> int:
    """Count the cells of a height field, or the pixels of a texture."""
    if tag == "hfield":
        return prod(prod(sizes.get(name, [0])) for name in ("nrow", "ncol"))
    if tag != "texture":
        return 0
    width, height = (prod(sizes.get(name, [0])) for name in ("width", "height"))
    # A cube, which is what a texture is unless it says otherwise, has six sides.
    return width * height if kind == "2d" else 6 * width * max(width, height)


def _num_pixels(file: Path) -> int:
    """Return how many pixels a PNG file says it has; 0 for other files."""
    head = _read(file, 24)
    if len(head) < 24 or not head.startswith(PNG):
        return 0
    return prod(struct.unpack(">II", head[16:]))
