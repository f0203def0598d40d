"""Files of others that are too large, too deep or full of numbers that are none."""

import resource
import tracemalloc

import numpy as np
import pytest

from horizon_rl.domains import load_catalogue
from horizon_rl.support.errors import InputError
from horizon_rl.support.reading import MAX_ARRAYS, MAX_TEXT, read_arrays, read_text
from horizon_rl.support.records import dumps, loads
from horizon_rl.support.toml_text import toml_tables


@pytest.mark.parametrize(
    "text",
    [
        "1e999",
        "-1e999",
        "NaN",
        "Infinity",
        "9" * 400,
        "9" * 5000,
        "[" * 100_000,
        "{",
        "",
    ],
)
def test_json_that_we_never_write_is_refused(text):
    with pytest.raises(InputError, match="not JSON"):
        loads(text)


def test_numbers_survive_to_the_bit():
    numbers = [0.1, 1e308, -5e-324, 2**63, -1]
    assert loads(dumps(numbers)) == numbers


@pytest.mark.parametrize("text", ["a = " + "9" * 5000, "a = " + "[" * 100_000, "a ="])
def test_toml_that_cannot_be_parsed_is_refused_with_its_file(text):
    with pytest.raises(InputError, match="mine.toml: not valid TOML"):
        with toml_tables(text, "mine.toml"):
            pass


def test_text_that_is_too_large_is_not_read(tmp_path):
    file = tmp_path / "catalogue.toml"
    with open(file, "wb") as opened:
        opened.truncate(1 << 40)
    tracemalloc.start()
    with pytest.raises(InputError, match="larger than 4 MB"):
        read_text(file)
    with pytest.raises(InputError, match="cannot read catalogue .* larger than 4 MB"):
        load_catalogue(file)
    assert tracemalloc.get_traced_memory()[1] < 4 * MAX_TEXT
    tracemalloc.stop()


def test_small_file_that_unpacks_to_gigabytes_is_refused_before_it_is_unpacked(
    tmp_path,
):
    file = tmp_path / "phase-00000.npz"
    np.savez_compressed(file, window_length=np.zeros(MAX_ARRAYS // 8 + 1))
    assert file.stat().st_size < 1 << 20
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match="its arrays take 256 MB"):
        read_arrays(file)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000
