"""Write a report: the page, and its figures beside it as PNG and SVG."""

import re
from pathlib import Path

from horizon_rl.show.report.gather import Material
from horizon_rl.show.report.page import FIGURES, GENERATOR, render_page, render_sections
from horizon_rl.show.report.svg import figure_png
from horizon_rl.support.durable import write_file
from horizon_rl.support.errors import InputError, blame

PAGE = "index.html"


def prepare_folder(folder: Path) -> None:
    """Make the folder of a report; one that holds another page is refused."""
    page, mark = folder / PAGE, f'content="{GENERATOR}"'
    with blame(f"--out {folder}", OSError):
        if page.exists() and mark not in page.read_text("utf-8", "replace"):
            raise InputError(
                f"--out {folder}: its {PAGE} is no report: name another folder"
            )
        (folder / FIGURES).mkdir(parents=True, exist_ok=True)


def write_report(material: Material, folder: Path) -> int:
    """Write everything into a prepared folder, the page last; returns how many figures.

    Figures that only the page before this one had are removed.
    """
    page, figures = folder / PAGE, folder / FIGURES
    before = _linked(page.read_text("utf-8", "replace")) if page.exists() else set()
    sections, drawings = render_sections(material, is_linked=True)
    for drawing in drawings:
        svg, png = drawing.svg.encode(), figure_png(drawing.figure)
        for ending, data in (("svg", svg), ("png", png)):
            write_file(figures / f"{drawing.name}.{ending}", data)
    number = len(material.runs)
    runs = "one run" if number == 1 else f"{number} runs"
    text = render_page(material.title, f"HORIZON report of {runs}", sections)
    write_file(page, text.encode())
    for name in before - _linked(text):
        (figures / name).unlink(missing_ok=True)
    return len(drawings)


def _linked(page: str) -> set[str]:
    """Return the names of the files beside it that a page of ours links to."""
    return set(re.findall(rf'href="{FIGURES}/([\w.+-]+\.(?:svg|png))"', page))
