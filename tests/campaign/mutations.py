"""Ways to alter a file: by bytes, by words and numbers, and with a forged checksum."""

import json
import random
import re

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
    *("1e12", "1000000000000", "9" * 5000, "0x10", "1_000", "007", "--1", "1.", "true"),
    *('"x"', "[]", "{}", "null", "[" * 2000, "[1, 2]", '"\\ud800"', '"\\u0000"', '""'),
)
"""What may stand in the place of a number."""
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
    try:
        lines[number] = to_line(record)
    except (ValueError, TypeError):  # What we could not write, a forger cannot either.
        return content
    return b"".join(lines)


def _replace(text: str, kind: re.Pattern, by: str, rng: random.Random) -> str:
    found = [match.span() for match in kind.finditer(text)]
    if not found:
        return text
    start, end = rng.choice(found)
    return text[:start] + by + text[end:]


VALUES = (
    None,
    True,
    False,
    -1,
    0,
    1,
    10**18,
    0.5,
    -1e300,
    "x",
    "",
    [],
    {},
    [[]],
    [None],
)


def _alter(node: object, rng: random.Random) -> None:
    """Change something in plain data, at a random depth."""
    while isinstance(node, dict | list) and node:
        keys = list(node) if isinstance(node, dict) else range(len(node))
        key = rng.choice(list(keys))
        inner = node[key]  # pyright: ignore[reportArgumentType, reportCallIssue]
        if isinstance(inner, dict | list) and inner and rng.random() < 0.8:
            node = inner
            continue
        if rng.random() < 0.2:
            del node[key]  # pyright: ignore[reportArgumentType, reportCallIssue]
        else:
            node[key] = rng.choice(VALUES)  # pyright: ignore
        return
