"""A real browser without a screen, for the pages that people look at."""

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from waiting import PATIENCE_S

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update"),
    "--disable-sync",
    # WebGL by the processor, for the viewer.
    *("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
)

COARSE = {"device_scale_factor": 0.5}
"""Without a GPU every pixel takes time: a quarter of them shows the same page."""


def find_chromium() -> str:
    """Return the browser's path; skip without one, unless HORIZON_BROWSER=required."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    required = os.environ.get("HORIZON_BROWSER") == "required"
    if found is None or (required and not find_spec("playwright")):
        (pytest.fail if required else pytest.skip)("needs Chromium and playwright")
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Start Chromium once for all tests of a process."""
    chromium = find_chromium()
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(
            executable_path=chromium, args=list(FLAGS), timeout=1000.0 * PATIENCE_S
        )
        yield found
        found.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """Open an empty page of its own, a screen of 1280 x 800."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, **COARSE)
    context.set_default_timeout(1000.0 * PATIENCE_S)
    yield context.new_page()
    context.close()


def listen_for_errors(page: Any) -> list[str]:
    """Return a list that every error on the page's console will be added to."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "console",
        lambda line: errors.append(line.text) if line.type == "error" else None,
    )
    return errors
