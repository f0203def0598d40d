"""The results in the docs are those on record."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_results_give_the_diagnostic_of_every_shipped_run():
    pytest.importorskip("torch")
    from horizon_rl.evaluation.studies.diagnostic import diagnose
    from horizon_rl.policies.shipped import shipped_runs
    from horizon_rl.runs.journal import replay
    from horizon_rl.runs.paths import journal_of

    page = (ROOT / "docs/results.md").read_text().split("## Diagnostic", 1)[1]
    table = page.split("\n## ", 1)[0].replace("−", "-")
    rows = {
        cells[0].strip("`"): cells[1:]
        for line in table.splitlines()
        if (cells := line.strip("| ").split(" | "))[1:]
    }
    runs = {k: journal_of(run) for k, run in shipped_runs().items() if run.is_dir()}
    assert runs.keys() <= rows.keys()

    def percent(share: float | None) -> str:
        return "-" if share is None else f"{100 * share:.0f}"

    for name, journal in runs.items():
        found = diagnose([replay(journal)])
        passed, *_, short = found.rows
        expected = [str(sum(row.phases for row in found.rows))]
        for row in (passed, short):
            gain = "-" if row.gain is None else f"{row.gain:+.3f}"
            expected += [str(row.phases), gain, percent(row.improvement_rate)]
        for rho in (found.length_correlation.rho, found.score_correlation.rho):
            expected.append("-" if rho is None else f"{rho:.2f}")
        assert rows[name] == expected, name
