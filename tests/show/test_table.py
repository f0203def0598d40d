"""One table value, rendered for a terminal and as Markdown."""

from io import StringIO

import pytest
from rich.console import Console

from horizon_rl.show.table import Cell, Table, bar, print_table, tabulate, to_markdown

TABLE = Table(
    "Runs [all]",
    ("name", "share\n%", "words"),
    (("a|b", Cell("9.5", "bold"), "yes"), (), ("long-hyphenated-name", "10.0")),
    ("A note.",),
    align="lrl",
    name_width=14,
)


def show(table: Table, width: int = 80) -> list[str]:
    out = StringIO()
    print_table(Console(file=out, width=width), table)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_terminal_aligns_columns_and_breaks_names_after_hyphens():
    assert show(TABLE) == [
        "Runs [all]",
        "             share",
        "name             %  words",
        "a|b            9.5  yes",
        "",
        "long-         10.0",
        "hyphenated-",
        "name",
        "A note.",
        "",
    ]


def test_markdown_has_the_same_cells_and_alignment():
    assert to_markdown(TABLE).splitlines() == [
        *("**Runs [all]**", "", "| name | share % | words |", "|---|---:|---|"),
        *("| a\\|b | **9.5** | yes |", "|  |", "| long-hyphenated-name | 10.0 |"),
        *("", "A note."),
    ]


def test_numbers_are_not_broken_where_names_can_be():
    table = Table("", ("column", "a" * 30, "n"), (("x" * 60, "1.0", "100.0 ± 0.5"),))
    lines = show(table, 60)
    assert max(map(len, lines)) <= 60 and "…" not in "".join(lines)
    assert any("100.0 ± 0.5" in line for line in lines)


@pytest.mark.parametrize("width", [30, 40, 50])
def test_narrow_terminal_breaks_a_table_into_parts_that_name_their_rows(width):
    headings = ("name", *(f"heading{k}" for k in range(6)))
    row = ("  a_long_name", *(f"{k}.12345" for k in range(6)))
    lines = show(Table("", headings, (row, ())), width)
    assert max(map(len, lines)) <= width and "…" not in "".join(lines)
    for text in (*headings[1:], *row[1:]):
        assert sum(text in line for line in lines) == 1
    parts = sum(line.startswith("name") for line in lines)
    assert parts > 1 and sum(line.startswith(row[0]) for line in lines) == parts


@pytest.mark.parametrize("width", [60, 70, 80, 100])
def test_words_of_a_long_heading_stay_whole_over_empty_cells(width):
    headings = ("group", *"abc", "expert's coverage", "core run's coverage", "d", "")
    numbers = ["60.0 ± 3.0"] * 4
    row = ("disturbance", *numbers, "", "actuation", "hard, no partner")
    lines = show(Table("", headings, (row, row), align="lrrrrrll"), width)
    words = "\n".join(lines).split()
    assert words.count("coverage") == 2 and words.count("run's") == 1


def test_parts_repeat_all_columns_that_name_a_row():
    headings = ("learner", "method", *(f"heading{k}" for k in range(6)))
    rows = (("given", "horizon", *"123456"), ("", "paper", *"123456"))
    lines = show(Table("", headings, rows, align="llr", keys=2), 50)
    parts = sum(line.startswith("learner") for line in lines)
    assert parts > 1 and max(map(len, lines)) <= 50
    assert sum("paper" in line for line in lines) == parts


def test_notes_are_wrapped_unless_they_name_a_path():
    note, path = "word " * 20, "of " + "runs/" * 20
    lines = show(Table("", ("a",), (("x",),), (note, path)), 50)
    assert path in lines and max(len(x) for x in lines if x != path) <= 50


@pytest.mark.parametrize(
    ("share", "drawn"), [(0.0, "····"), (0.5, "██··"), (0.53, "██▏·"), (2.0, "████")]
)
def test_bar_is_drawn_to_an_eighth(share, drawn):
    assert bar(share, 4).plain == drawn


def test_share_is_a_bar_before_its_text():
    table = Table("", ("a", "b"), (("x", Cell("50%", share=0.5)),))
    assert "████···· 50%" in show(table)[1]


def test_columns_say_what_to_write_of_an_item():
    columns = [("n", str), ("square", lambda n: Cell(str(n * n), "bold"))]
    table = tabulate("Squares", (2, 3), columns, ["A note."], align="r")
    assert table.headings == ("n", "square") and table.notes == ("A note.",)
    assert table.rows == (("2", Cell("4", "bold")), ("3", Cell("9", "bold")))
    assert not table.is_left(0)
