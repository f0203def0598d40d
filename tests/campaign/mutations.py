"""Ways to alter a file: by bytes, by words and numbers, and with a forged checksum."""

import io
import json
import random
import re
from typing import Any

import numpy as np

from horizon_rl.runs.lines import CHECKSUM, to_line

NUMBERS = (
    *("nan", "inf", "-inf", "NaN", "Infinity", "1e999", "-1e999", "1e308", "-1e308"),
    *(
        "0",
        "-0.0",
        "-1",
        "0.5",
        "1",
        "2",
        "1e-320",
        "4294967296",
        "9223372036854775808",
    ),
    *("1e12", "1000000000000", "0x10", "1_000", "007", "--1", "1.", "true"),
    # No longer a float's, but still an int's; the most digits that Python reads are 4,300.
    *("9" * 30, "9" * 310, f"1{400 * '0'}", "9" * 4000, "9" * 5000),
    *('"x"', "[]", "{}", "null", "[" * 2000, "[1, 2]", '"\\ud800"', '"\\u0000"', '""'),
)
"""What may stand in the place of a number."""
LOCATIONS = ("", ".", "..", "/etc/passwd", "../x", "\x00", "x" * 5000, "no.bin")
"""What may stand in the place of a file's name."""
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
WORD = re.compile(r"[A-Za-z_]\w*")


def mutate_bytes(content: bytes, rng: random.Random) -> bytes:
    """Flip, cut, double, insert or overwrite some bytes."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        if not data:
            break
        start = rng.randrange(len(data))
        end = min(len(data), start + rng.choice((1, 2, 8, 64, 1024)))
        match rng.randrange(6):
            case 0:
                data[start] ^= 1 << rng.randrange(8)
            case 1:
                del data[start:end]
            case 2:
                data[start:start] = data[start:end]
            case 3:
                data[start:start] = rng.randbytes(end - start)
            case 4:
                data[start:end] = rng.randbytes(end - start)
            case 5:
                del data[start:]
    return bytes(data)


def mutate_text(content: bytes, rng: random.Random) -> bytes:
    """Put another number, word or line in the place of one."""
    text = content.decode("utf-8", "replace")
    match rng.randrange(5):
        case 0 | 1:
            text = _replace(text, NUMBER, rng.choice(NUMBERS), rng)
        case 2:
            words = WORD.findall(text) or ["x"]
            text = _replace(text, WORD, rng.choice(words), rng)
        case 3:
            lines = text.splitlines(keepends=True) or [""]
            line = rng.randrange(len(lines))
            lines[line : line + 1] = rng.choice(([], 2 * lines[line : line + 1]))
            text = "".join(lines)
        case 4:
            return mutate_bytes(content, rng)
    return text.encode("utf-8", "replace")


def forge_line(content: bytes, rng: random.Random) -> bytes:
    """Alter one record of a file of lines, and give it a checksum that fits."""
    lines = content.splitlines(keepends=True)
    number = rng.randrange(len(lines))
    record = json.loads(lines[number])
    record.pop(CHECKSUM, None)
    _alter(record, rng)
    lines[number] = to_line(record)
    return b"".join(lines)


def forge_record(content: bytes, rng: random.Random) -> bytes:
    """Alter something in one line of a file whose lines are JSON without checksums."""
    lines = content.splitlines(keepends=True)
    number = rng.randrange(len(lines))
    lines[number] = forge_json(lines[number], rng) + b"\n"
    return b"".join(lines)


def forge_json(content: bytes, rng: random.Random) -> bytes:
    """Alter something in a file that is one JSON value and has no checksum."""
    data = json.loads(content)
    _alter(data, rng)
    return json.dumps(data).encode()


def forge_arrays(content: bytes, rng: random.Random) -> bytes:
    """Alter, drop or add an array of an .npz file, and save it again."""
    arrays = dict(np.load(io.BytesIO(content)))
    name = rng.choice(list(arrays))
    values = arrays.pop(name)
    others = (values[::-1], values[:-1], values[None], values.astype(str), values[:0])
    numbers = (np.nan, np.inf, -1.0, 1e38, 0.5)
    kind = rng.random()
    if kind < 0.4:
        arrays[name] = rng.choice(others)
    elif kind < 0.8 and len(values):
        arrays[name] = values.astype(float)
        arrays[name][rng.randrange(len(values))] = rng.choice(numbers)
    elif kind < 0.9:
        arrays[rng.choice(("x", "anchor_size:x", "_", "window_error:"))] = values
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)
    return packed.getvalue()


def forge_external(content: bytes, rng: random.Random) -> bytes:
    """Alter where an ONNX file says that one of its tensors lies, or some bytes."""
    if rng.random() < 0.3:
        return mutate_bytes(content, rng)
    import onnx

    model = onnx.load_model_from_string(content)
    tensor = rng.choice([x for x in model.graph.initializer if x.external_data])
    entry = rng.choice(tensor.external_data)
    kind = rng.random()
    if kind < 0.15:
        tensor.external_data.remove(entry)
    elif kind < 0.25:
        tensor.dims[:] = rng.choice(([-1], [0], [7], [10**9, 10**9], []))
    elif entry.key == "location":
        entry.value = rng.choice(LOCATIONS)
    else:
        entry.value = rng.choice(NUMBERS)
    return model.SerializeToString()


def _replace(text: str, kind: re.Pattern, by: str, rng: random.Random) -> str:
    found = [match.span() for match in kind.finditer(text)]
    if not found:
        return text
    start, end = rng.choice(found)
    return text[:start] + by + text[end:]


VALUES = (
    *(None, True, False, -1, 0, 1, 10**18, 0.5, -1e300, "x", "", [], {}, [[]], [None]),
    # As large as a float can be, so that a sum is not; larger; and hard to print.
    *(10**308, -(10**308), 1e308, 10**400, -(10**400), 10**4000),
)
"""What may stand in the place of anything."""


def _alter(data: Any, rng: random.Random) -> None:
    """Replace, delete or rename something in plain data."""
    # Anything alike, or deeper and deeper: a large table must not hide a small one.
    holder, key = (
        rng.choice(_places(data)) if rng.random() < 0.5 else _descend(data, rng)
    )
    kind = rng.random()
    if kind < 0.15:
        del holder[key]
    elif kind < 0.2 and isinstance(holder, dict):
        holder["x"] = holder.pop(key)
    else:
        holder[key] = rng.choice(VALUES)


def _places(node: Any) -> list[tuple[Any, Any]]:
    """Return everything in plain data, as what holds it and its key there."""
    found: list[tuple[Any, Any]] = []
    for key in _keys(node):
        found += [(node, key), *_places(node[key])]
    return found


def _descend(node: Any, rng: random.Random) -> tuple[Any, Any]:
    """Go down into plain data, along a random key at every depth."""
    while True:
        key = rng.choice(_keys(node))
        if not _keys(node[key]) or rng.random() < 0.2:
            return node, key
        node = node[key]


def _keys(node: Any) -> list[Any]:
    if isinstance(node, list):
        return list(range(len(node)))
    return list(node) if isinstance(node, dict) else []
