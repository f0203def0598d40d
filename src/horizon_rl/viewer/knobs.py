"""Sliders for the physics: one for every parameter of the catalogue."""

from dataclasses import dataclass

import numpy as np
import viser

from horizon_rl.domains import Group, Parameter, sample
from horizon_rl.evaluation.explain import AXES
from horizon_rl.evaluation.suite import PUSH
from horizon_rl.viewer.session import Session

STEPS = 200
"""A slider goes through its limits in so many steps."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Knob:
    """A slider, and the values it stands for."""

    name: str
    place: int | slice
    slider: viser.GuiSliderHandle

    def turn(self, session: Session, value: float) -> None:
        """Give the session the slider's value."""
        values = session.values[self.name].copy()
        values[self.place] = value
        session.set_values({self.name: values})

    def show(self, session: Session) -> None:
        """Show the session's value; the mean where there are several."""
        value = float(np.mean(session.values[self.name][self.place]))
        self.slider.value = min(max(value, self.slider.min), self.slider.max)


def add_knobs(gui: viser.GuiApi, session: Session, group: Group) -> list[Knob]:
    """Add the sliders of a group; pushes have their own."""
    return [
        knob
        for parameter in group.parameters
        if (name := f"{group.name}.{parameter.name}") != PUSH
        for knob in _add(gui, session, name, parameter)
    ]


def draw_group(session: Session, group: str, level: float, rng: np.random.Generator):
    """Draw a group's values from its ranges at a level."""
    catalogue = session.setup.catalogue
    drawn = sample(catalogue, catalogue.ranges({group: level}), 1, rng)
    own = (name for name in drawn if name.startswith(f"{group}."))
    session.set_values({name: np.ravel(drawn[name]) for name in own})


def _add(
    gui: viser.GuiApi, session: Session, name: str, parameter: Parameter
) -> list[Knob]:
    """Add a slider for each axis, or one for all that a parameter draws."""
    limit, baseline = parameter.limit, parameter.baseline
    if limit.width == 0.0:
        return []  # A constant.
    unit = f", {parameter.unit}" if parameter.unit else ""
    three = parameter.draws == len(AXES)
    knobs = []
    for place in range(3) if three else (slice(None),):
        axis = f" {AXES[place]}" if isinstance(place, int) else ""
        slider = gui.add_slider(
            f"{parameter.name.replace('_', ' ')}{axis}{unit}",
            limit.low,
            limit.high,
            float(f"{limit.width / STEPS:.1g}"),
            baseline.middle,
            marks=((baseline.middle, "baseline"),),
            hint=f"{parameter.about}; baseline {baseline}, limit {limit}",
        )
        knobs.append(Knob(name=name, place=place, slider=slider))
        knobs[-1].show(session)
    return knobs
