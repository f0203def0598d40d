"""Users' catalogues: what can be written, and what a mistake is answered with."""

import pytest

from horizon_rl.domains import (
    Catalogue,
    Range,
    load_catalogue,
    paper_catalogue,
    parse_catalogue,
)
from horizon_rl.support.errors import InputError
from horizon_rl.support.records import decode, dumps, encode, loads
from horizon_rl.support.toml_text import find_line

ONE = """
[groups.mass.parameters.scale]
baseline = [0.9, 1.1]
limit = [0.4, 5.0]
"""


def test_catalogue_of_ones_own_stands_alone():
    catalogue = parse_catalogue(ONE)
    assert catalogue.names == ("mass",)
    assert catalogue.parameters["mass.scale"].limit == Range(0.4, 5.0)


def test_extending_the_paper_narrows_one_limit_and_keeps_the_rest():
    catalogue = parse_catalogue(
        'extends = "paper"\n[groups.mass.parameters.scale]\nlimit = [0.8, 2.0]\n'
    )
    assert catalogue.names == paper_catalogue().names
    scale = catalogue.parameters["mass.scale"]
    assert scale.limit == Range(0.8, 2.0)
    assert scale.baseline == Range(0.9, 1.1)
    assert catalogue["com"] == paper_catalogue()["com"]


def test_extending_the_paper_adds_a_parameter_and_a_group():
    catalogue = parse_catalogue(
        """
        extends = "paper"
        [groups.mass.parameters.payload]
        baseline = [0, 0]
        limit = [0, 5]
        unit = "kg"
        [groups.latency]
        about = "how late actions arrive"
        [groups.latency.parameters.action_delay]
        baseline = [0.0, 0.0]
        limit = [0.0, 0.06]
        unit = "s"
        draws = 2
        """
    )
    assert catalogue.names == (*paper_catalogue().names, "latency")
    assert [p.name for p in catalogue["mass"].parameters] == ["scale", "payload"]
    assert catalogue.parameters["latency.action_delay"].draws == 2


def test_catalogue_from_before_mirrors_still_loads():
    old = encode(paper_catalogue())
    for group in old["groups"]:
        for parameter in group["parameters"]:
            del parameter["mirror"]
    found = decode(Catalogue, loads(dumps(old)))
    assert found.ranges({}) == paper_catalogue().ranges({})
    assert found.parameters["com.offset"].mirror is None
    today = decode(Catalogue, loads(dumps(encode(paper_catalogue()))))
    assert today == paper_catalogue()
    assert today.parameters["com.offset"].mirror == (1, -2, 3)


PARAMETER = "[groups.mass.parameters.scale]\n"
BAD = {
    "empty": ("", "no groups in this file"),
    "only a comment": ("# nothing\n", "no groups in this file"),
    "not TOML": ("groups = [", "not valid TOML"),
    "low above high": (
        PARAMETER + "baseline = [1.1, 0.9]\nlimit = [0.4, 5.0]\n",
        ":2: groups.mass.parameters.scale.baseline: 1.1..0.9: needs .* smaller first",
    ),
    "limit inside baseline": (
        PARAMETER + "baseline = [0.9, 1.1]\nlimit = [1.0, 1.05]\n",
        ":1: groups.mass.parameters.scale: limit 1..1.05 does not contain baseline",
    ),
    "NaN": (
        PARAMETER + "baseline = [0.9, 1.1]\nlimit = [nan, 5.0]\n",
        ":3: groups.mass.parameters.scale.limit.0.: nan is not a finite number",
    ),
    "infinite": (
        PARAMETER + "baseline = [0.9, 1.1]\nlimit = [0.4, inf]\n",
        ":3: groups.mass.parameters.scale.limit.1.: inf is not a finite number",
    ),
    "mirror that is none": (
        PARAMETER + "baseline = [0, 0]\nlimit = [-1, 1]\nmirror = [2, -1]\n",
        r":1: groups.mass.parameters.scale: mirror \[2, -1\]: seen in it twice",
    ),
    "mirror of the draw before the first": (
        PARAMETER + "baseline = [0, 0]\nlimit = [-1, 1]\nmirror = [0]\n",
        r":1: groups.mass.parameters.scale: mirror \[0\]: seen in it twice",
    ),
    "misspelt key": (
        PARAMETER + "baselin = [0.9, 1.1]\nlimit = [0.4, 5.0]\n",
        ":1: .*needs baseline and limit, found baselin, limit",
    ),
    "misspelt table": (
        "[group.mass.parameters.scale]\n",
        ":1: group: unknown field 'group': did you mean 'groups'",
    ),
    "misspelt parameter": (
        'extends = "paper"\n\n[groups.mass.parameters.scal]\nlimit = [0.5, 2.0]\n',
        ":3: .*unknown parameter 'mass.scal': did you mean 'mass.scale'",
    ),
    "misspelt group": (
        'extends = "paper"\n[groups.mas.parameters.scale]\nlimit = [0.5, 2.0]\n',
        ":2: .*unknown parameter 'mas.scale': did you mean 'mass.scale'",
    ),
    "limit missing": (PARAMETER + "baseline = [0, 1]\n", "found baseline$"),
    "misspelt unit": (ONE + 'unt = "kg"\n', ":5: .*unknown field 'unt'"),
    "one number": (PARAMETER + "baseline = 1\nlimit = [0, 2]\n", "1 is not a list"),
    "three numbers": (
        PARAMETER + "baseline = [0, 1, 2]\nlimit = [0, 2]\n",
        "is not a list of 2",
    ),
    "text for a number": (
        PARAMETER + 'baseline = ["a", 1]\nlimit = [0, 2]\n',
        "'a' is not a number",
    ),
    "boolean for a number": (
        PARAMETER + "baseline = [false, true]\nlimit = [0, 2]\n",
        "False is not a number",
    ),
    "no draws": (ONE + "draws = 0\n", "draws is 0; accepted: whole numbers, 1..1024"),
    "half a draw": (ONE + "draws = 1.5\n", "not a whole number"),
    "unit of a number": (ONE + "unit = 3\n", "is not a string"),
    "group without parameters": ("[groups.mass]\n", "has no parameters"),
    "group that is no table": ("groups.mass = 3\n", "is not a table"),
    "name with a dot": ('[groups."a.b"]\n', "names consist of"),
    "extends something else": (
        'extends = "mine"\n',
        "'mine' is not one of paper, extended",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_catalogue_is_refused_with_its_place_and_cause(name):
    text, message = BAD[name]
    with pytest.raises(InputError, match=message) as error:
        parse_catalogue(text, source="mine.toml")
    assert str(error.value).startswith("mine.toml")


def test_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot read catalogue"):
        load_catalogue(tmp_path / "none.toml")
    with pytest.raises(InputError, match="cannot read catalogue"):
        load_catalogue(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"about = '\xe9'")
    with pytest.raises(InputError, match="cannot read catalogue"):
        load_catalogue(tmp_path / "latin.toml")


def test_line_is_found_in_tables_dotted_keys_and_inline_tables():
    text = "[a.b]\nx = 1\n\n[ a . c ] # note\n'y' = 2\nd.e = 3\nf = {g = 4}\n"
    assert find_line(text, ("a", "b", "x")) == 2
    assert find_line(text, ("a", "c", "y")) == 5
    assert find_line(text, ("a", "c", "d", "e")) == 6
    assert find_line(text, ("a", "c", "f", "g")) == 7
    assert find_line(text, ("nowhere",)) == 1


def test_draws_of_all_parameters_together_are_bounded():
    one = "[groups.g.parameters.p{}]\nbaseline = [0, 0]\nlimit = [0, 1]\ndraws = 1024\n"
    parse_catalogue("".join(one.format(k) for k in range(97)))
    with pytest.raises(InputError, match="draws of all parameters is 100352; accepted"):
        parse_catalogue("".join(one.format(k) for k in range(98)))
