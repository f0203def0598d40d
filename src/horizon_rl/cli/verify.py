"""`horizon verify`: whether a run's files are what was written."""

from dataclasses import dataclass

from horizon_rl.cli.common import RunArgument, Terminal, print_json
from horizon_rl.policies.shipped import is_shipped_run, shipped_runs
from horizon_rl.runs.find import find_journal, newest_journal
from horizon_rl.runs.verify import Finding, verify_run
from horizon_rl.show.table import Cell, Table
from horizon_rl.support.errors import RunError
from horizon_rl.support.records import encode


@dataclass(frozen=True, kw_only=True)
class VerifyCmd:
    """Verify all files of a run: journal, checkpoints, evidence, verdicts, telemetry."""

    run: RunArgument = None
    json: bool = False
    """Print JSON instead of a table."""


def run(cmd: VerifyCmd) -> None:
    from horizon_rl.evaluation.studies.recheck import recheck

    journal = find_journal(cmd.run, shipped_runs()) if cmd.run else newest_journal()
    is_shipped = is_shipped_run(journal.parent)
    files, findings = verify_run(journal, is_shipped=is_shipped)
    again = recheck(files)
    wrong = [x for x in again.disagreements if x.phase not in files.damaged]
    verdicts = Finding(
        part="verdicts",
        by="the episodes in evidence",
        sound=again.agreed,
        total=again.phases,
        problems=tuple(f"phase {x.phase}: {x.what}" for x in wrong),
    )
    findings.append(verdicts)
    if cmd.json:
        print_json([encode(finding) for finding in findings])
    else:
        Terminal().print_table(_table(str(journal.parent), findings))
    num_problems = sum(len(x.problems) for x in findings)
    if num_problems:
        raise RunError(
            f"{num_problems} part(s) of {journal.parent} are damaged or missing"
        )


def _table(run: str, findings: list[Finding]) -> Table:
    rows = [(x.part, f"{x.sound} of {x.total}", _state(x), x.by) for x in findings]
    notes = [problem for x in findings for problem in x.problems]
    headings = ("", "verified", "", "by")
    return Table(run, headings, tuple(rows), tuple(notes), align="lrl")


def _state(finding: Finding) -> Cell:
    if finding.problems:
        return Cell("damaged", "red")
    missing = finding.total - finding.sound
    return Cell(f"sound, {missing} not kept" if missing else "sound")
