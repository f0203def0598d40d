"""Words that messages share."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "phase"), counted(0, "phase")
    ('1 phase', '0 phases')
    """
    return f"{number} {noun}{'s' * (number != 1)}"
