"""Write a report: the page, and its figures beside it as PNG and SVG."""

import re
from pathlib import Path

from horizon_rl.show.report.blocks import Section, drawings
from horizon_rl.show.report.gather import Material
from horizon_rl.show.report.page import FIGURES, GENERATOR, render_page, render_section
from horizon_rl.show.report.progress_sections import (
    cost_section,
    coverage_section,
    diagnostic_section,
    signal_section,
)
from horizon_rl.show.report.record_sections import (
    config_section,
    making_section,
    steps_section,
)
from horizon_rl.show.report.run_sections import (
    frontiers_section,
    gates_section,
    summary_section,
    verdicts_section,
)
from horizon_rl.show.report.score_sections import (
    failures_section,
    interventions_section,
    ood_section,
    other_section,
)
from horizon_rl.show.report.svg import figure_png
from horizon_rl.support.durable import write_file
from horizon_rl.support.errors import InputError

PAGE = "index.html"
SECTIONS = (
    *(summary_section, frontiers_section, coverage_section, ood_section),
    *(interventions_section, other_section, signal_section, cost_section),
    *(gates_section, verdicts_section, diagnostic_section, failures_section),
    *(steps_section, config_section, making_section),
)


def prepare_folder(folder: Path) -> None:
    """Make the folder of a report; one that holds another page is refused."""
    page = folder / PAGE
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out {folder}: a file, not a folder")
    if page.exists() and f'content="{GENERATOR}"' not in page.read_text(
        "utf-8", "replace"
    ):
        raise InputError(
            f"--out {folder}: its {PAGE} is no report: name another folder"
        )
    try:
        (folder / FIGURES).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {folder}: {error.strerror}") from error


def make_sections(material: Material) -> list[Section]:
    """Make all sections for which there is anything to say."""
    found = (make(material) for make in SECTIONS)
    return [section for section in found if section is not None]


def titles(material: Material) -> tuple[str, str]:
    """Return title and subtitle of the page."""
    names = list(dict.fromkeys(run.files.name for run in material.runs))
    number = len(material.runs)
    runs = "one run" if number == 1 else f"{number} runs"
    return ", ".join(names), f"HORIZON report of {runs}"


def write_report(material: Material, folder: Path) -> int:
    """Write everything into a prepared folder, the page last; returns how many figures.

    Figures that only the page before this one had are removed.
    """
    page, figures = folder / PAGE, folder / FIGURES
    before = _linked(page.read_text("utf-8", "replace")) if page.exists() else set()
    sections = make_sections(material)
    drawn = [d for section in sections for d in drawings(section.blocks)]
    for drawing in drawn:
        svg, png = drawing.svg.encode(), figure_png(drawing.figure)
        for ending, data in (("svg", svg), ("png", png)):
            write_file(figures / f"{drawing.name}.{ending}", data)
    rendered = [render_section(section, downloads=True) for section in sections]
    text = render_page(*titles(material), rendered)
    write_file(page, text.encode())
    for name in before - _linked(text):
        (figures / name).unlink(missing_ok=True)
    return len(drawn)


def _linked(page: str) -> set[str]:
    """Return the names of the files beside it that a page of ours links to."""
    return set(re.findall(rf'href="{FIGURES}/([\w.+-]+\.(?:svg|png))"', page))
