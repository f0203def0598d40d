"""The page as a reader sees it, in a real browser."""

from browsing import listen_for_errors

BOXES = "all => all.map(e => { const b = e.getBoundingClientRect(); return [b.width, b.height] })"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def show(page, folder, width=1280):
    errors = listen_for_errors(page)
    page.set_viewport_size({"width": width, "height": 800})
    page.goto((folder / "index.html").as_uri())
    return errors


def test_every_figure_has_a_box_and_the_console_is_silent(page, shipped_report):
    errors = show(page, shipped_report)
    boxes = page.eval_on_selector_all("figure svg", BOXES)
    assert len(boxes) == len([*(shipped_report / "figures").glob("*.svg")]) > 0
    assert all(width > 300 and height > 80 for width, height in boxes)
    assert page.inner_text("h1") == "core-mlp" and errors == []


def test_links_lead_to_their_sections_and_files(page, shipped_report):
    page.emulate_media(reduced_motion="reduce")
    show(page, shipped_report)
    for link in page.query_selector_all("nav a"):
        link.click()
        heading = page.locator(f"{link.get_attribute('href')} h2")
        assert heading.inner_text() == link.inner_text()
        assert -1 <= heading.bounding_box()["y"] < 800
    for link in page.query_selector_all("figcaption a"):
        assert (shipped_report / link.get_attribute("href")).is_file()


def test_nothing_sticks_out_on_a_phone_and_wide_tables_scroll(page, shipped_report):
    errors = show(page, shipped_report, width=360)
    page.eval_on_selector_all("details", "all => all.forEach(d => d.open = true)")
    assert page.evaluate(OVERFLOW) == 0 and errors == []
    scrolls = "all => all.filter(e => e.scrollWidth > e.clientWidth).length"
    assert page.eval_on_selector_all(".scroll", scrolls) > 3


def test_dark_mode_turns_paper_and_ink(page, shipped_report):
    page.emulate_media(color_scheme="dark")
    show(page, shipped_report)
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    tick = "document.querySelector('svg [stroke=\"#000000\"]')"
    ink = page.evaluate(f"getComputedStyle({tick}).stroke")
    assert (paper, ink) == ("rgb(20, 23, 26)", "rgb(227, 230, 233)")


def test_print_leaves_out_what_is_for_clicking_and_opens_all_folds(
    page, shipped_report
):
    show(page, shipped_report)
    page.emulate_media(media="print")
    assert not page.is_visible("nav") and not page.is_visible(".downloads >> nth=0")
    assert page.locator("details td").last.bounding_box()["height"] > 0
    assert len(page.pdf(format="A4")) > 20_000
