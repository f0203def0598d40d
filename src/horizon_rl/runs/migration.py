"""Headers of older journals, as if written today: see `lines.SCHEMA`."""

from typing import Any


def migrate_header(header: dict[str, Any]) -> dict[str, Any]:
    """Give an old header the method that it means."""
    header = _name_paper(header) if header["schema"] < 3 else header
    header = _complete_leap(header)
    if "method" in header or not isinstance(header.get("curriculum"), dict):
        return header
    if header["curriculum"].get("clock"):
        return {**header, "method": "clock", "settings": {}}
    context = header.get("context")
    train = context.get("train") if isinstance(context, dict) else None
    early = train.get("early") if isinstance(train, dict) else None
    settings = {"early": early} if early else {}
    return {**header, "method": "paper", "settings": settings}


def _name_paper(data: Any) -> Any:
    """Call the method `horizon` by its present name, wherever a header has it."""
    if not isinstance(data, dict):
        return data
    named = {key: _name_paper(value) for key, value in data.items()}
    return named | {"method": "paper"} if data.get("method") == "horizon" else named


def _complete_leap(data: Any) -> Any:
    """Give settings of leaps what they meant before they had it."""
    if not isinstance(data, dict):
        return data
    done = {key: _complete_leap(value) for key, value in data.items()}
    leap = done.get("leap")
    if not isinstance(leap, dict):
        return done
    return done | {"leap": {"smoothing": 0.0, "weigh_error": False, **leap}}
