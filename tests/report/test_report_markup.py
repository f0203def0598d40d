"""Whatever comes from files is text on the page, and figures stay in their place."""

import pytest
from html_check import complaints

from horizon_rl.show.report.blocks import (
    Drawing,
    Facts,
    Fold,
    Missing,
    Prose,
    Section,
    slug,
)
from horizon_rl.show.report.markup import tag
from horizon_rl.show.report.page import render_page, render_section
from horizon_rl.show.report.svg import figure_svg
from horizon_rl.show.table import Cells

EVIL = "</td><script>alert(1)</script>\"'&<b>"


def draw(title: str = EVIL):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.subplots()
    axes.plot([0, 1], "o-", label="line", mec="white")
    axes.fill_between([0, 1], [0, 1])
    axes.set_title(title, weight="bold")
    return figure


def test_text_is_escaped_and_tags_are_not():
    html = tag("p", "a < b", tag("b", "c"), None, class_='x"y', hidden=True, id=None)
    assert html == '<p class="x&quot;y" hidden>a &lt; b<b>c</b></p>'


def test_hostile_words_stay_words_wherever_they_stand():
    section = Section(
        id="one",
        title=EVIL,
        intro=EVIL,
        blocks=(
            Cells(EVIL, (EVIL, EVIL), ((EVIL, EVIL),), (EVIL,)),
            Facts(title=EVIL, subtitle=EVIL, pairs=((EVIL, EVIL),), share=7.0),
            Fold(title=EVIL, blocks=(Prose(f"`{EVIL}`"),)),
            Missing(what=EVIL, commands=(EVIL,)),
            Drawing(name=slug(EVIL), about=EVIL, figure=draw()),
        ),
    )
    page = render_page(EVIL, EVIL, [render_section(section, downloads=True)])
    assert complaints(page) == []
    assert "<script" not in page and "alert(1)" in page


def test_two_figures_share_no_id_and_have_no_style_of_their_own():
    sections = [
        Section(
            id=name,
            title=name,
            blocks=(Drawing(name=f"figure-{name}", about=name, figure=draw()),),
        )
        for name in ("a", "b")
    ]
    page = render_page("t", "s", [render_section(section) for section in sections])
    assert complaints(page) == []
    assert page.count('id="figure-a-') > 0 and page.count('id="figure-b-') > 0
    assert " style=" not in page


def test_text_of_a_figure_can_be_searched():
    svg = figure_svg(draw("mastered level"), "name", "about")
    assert ">mastered level</text>" in svg and 'font-weight="700"' in svg


def test_same_figure_gives_the_same_bytes():
    assert figure_svg(draw(), "n", "a") == figure_svg(draw(), "n", "a")


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "<b>", "x\0y", "a b"])
def test_name_of_a_file_holds_no_way_out_of_its_folder(name):
    assert not set(slug(name)) & set("/\\<>\0 \"'")


def test_long_names_are_cut_and_stay_apart():
    names = {slug("x" * 300 + end) for end in ("/a b", "/a-b")}
    assert len(names) == 2 and max(map(len, names)) <= 60


def test_checker_finds_what_it_looks_for():
    assert complaints("<p><b></p>") and complaints('<p id="a"></p><p id="a"></p>')
    assert complaints('<a href="#x"></a>') and complaints('<p style="x"></p>')
    assert complaints('<a href="https://example.org/"></a>')
