"""Whatever comes from files is text on the page, and figures stay in their place."""

import pytest
from html_check import complaints

from horizon_rl.show.report.gather import Source, gather
from horizon_rl.show.report.page import (
    Section,
    render_live,
    render_page,
    render_sections,
    slug,
)
from horizon_rl.show.report.svg import figure_svg
from run_files import stop, write_times

EVIL = "</td><script>alert(1)</script>\"'&<b>"


def draw(title: str = EVIL):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.subplots()
    axes.plot([0, 1], "o-", label="line", mec="white")
    axes.fill_between([0, 1], [0, 1])
    axes.set_title(title, weight="bold")
    return figure


@pytest.fixture
def material(tmp_path):
    """A run, its evaluation and its commands, all of which have hostile names."""
    run = stop(tmp_path / EVIL.replace("/", "-"), method=EVIL)
    write_times(run)
    suite = {"name": EVIL, "hash": EVIL, "severity": None}
    columns = {EVIL: {"success": 0.5, "episodes": 8}}
    return gather(
        [Source(text=EVIL, argument=EVIL, journal=run / "journal.jsonl", name=EVIL)],
        records=[{"policy": EVIL, "suite": suite, "columns": columns}],
        command=EVIL,
    )


def test_hostile_words_stay_words_wherever_they_stand(material):
    sections, drawings = render_sections(material, is_linked=True)
    live = render_live(material.runs[0].summary, problem=EVIL)
    page = render_page(EVIL, EVIL, [live, *sections])
    assert complaints(page) == []
    assert "<script" not in page and page.count("alert(1)") > 20
    assert all(slug(drawing.name) == drawing.name for drawing in drawings)


def test_only_a_live_page_has_a_script(material):
    section = render_live(material.runs[0].summary)
    for is_live in (False, True):
        page = render_page("t", "s", [section], is_live=is_live)
        assert complaints(page) == []
        assert page.count("<script>") == page.count("script-src") == is_live


def test_section_is_known_by_what_it_says():
    first = Section("one", "One", render_live(None, "a").body)
    assert first.digest == Section("one", "One", first.body).digest
    assert first.digest != render_live(None, "b").digest
    assert f'data-digest="{first.digest}"' in first.html(with_digest=True)


def test_figures_share_no_id_and_have_no_style_of_their_own(material):
    sections, drawings = render_sections(material)
    page = render_page("t", "s", sections)
    assert complaints(page) == [] and " style=" not in page
    assert len(drawings) > 3
    assert all(f'id="{drawing.name}-' in drawing.svg for drawing in drawings)


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
