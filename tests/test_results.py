"""The results in the docs are those on record."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("title", "suite", "severity", "nth", "suffix"),
    [
        ("**Severity 0.5**", "ood", 0.5, 0, ""),
        ("**Severity 1**", "ood", 1.0, 0, ""),
        ("## Compositions", "compositions", 0.5, 0, ""),
        ("## Interventions", "interventions", None, 0, ""),
        ("## Robots", "robots", None, 0, ""),
        ("## Robots", "robots", None, 1, "-own"),
    ],
)
def test_results_of_shipped_policies_are_those_on_record(
    title, suite, severity, nth, suffix
):
    pytest.importorskip("mujoco")
    from horizon_rl.policies.shipped import model_names, read_model

    page = (ROOT / "docs/results.md").read_text()
    rows = re.search(r"^\|.*?(?=\n\n)", page.split(title, 1)[1], re.M | re.DOTALL)
    assert rows
    head, _, *body = (
        [cell.strip(" *") for cell in line.strip("|").split("|")]
        for line in rows[0].splitlines()
    )
    compared = 0
    for name in model_names():
        places = [
            i for i, cell in enumerate(head) if cell.split(", ")[0].rstrip(" ⁴") == name
        ]
        for result in read_model(name).results:
            kind = result["suite"]["name"], result["suite"]["severity"]
            if kind != (suite, severity) or len(places) <= nth:
                continue
            for row in body:
                success = result["columns"][row[0] + suffix]["success"]
                assert row[places[nth]] == f"{100 * success:.1f}", (name, row[0])
                compared += 1
    assert compared >= len(body)


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
