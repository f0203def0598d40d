"""Tests of pages skip without a browser, unless there must be one."""

import pytest

import browsing


@pytest.mark.parametrize(
    ("value", "outcome"),
    [("", pytest.skip.Exception), ("required", pytest.fail.Exception)],
)
def test_missing_browser_skips_unless_it_is_required(monkeypatch, value, outcome):
    monkeypatch.setattr(browsing.shutil, "which", lambda name: None)
    monkeypatch.setenv("HORIZON_BROWSER", value)
    with pytest.raises(outcome, match="needs Chromium"):
        browsing.find_chromium()
