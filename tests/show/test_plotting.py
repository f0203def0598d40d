"""What all figures share."""

import pytest


def test_no_two_of_many_names_have_colour_and_marker_in_common():
    pytest.importorskip("matplotlib")
    from horizon_rl.show.plotting import name_styles

    names = [f"method {k}" for k in range(40)]
    colours, markers = name_styles([*names, *names])
    pairs = {(colours[name], markers[name]) for name in names}
    assert len(pairs) == len(names)
