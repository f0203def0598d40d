"""The page's controls: everything a user can change, and what the session shows."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import isfinite
from types import SimpleNamespace
from typing import Any

import numpy as np
import viser

from horizon_rl.domains import Parameter, sample
from horizon_rl.evaluation.explain import AXES
from horizon_rl.evaluation.suite import PUSH
from horizon_rl.physics.terrain import SIZES
from horizon_rl.policies.load import load_policy
from horizon_rl.robots import INTERVENTIONS, preset_names
from horizon_rl.support.errors import InputError, unknown
from horizon_rl.viewer.body import BodyVariant
from horizon_rl.viewer.levels import compare_levels, read_mastered
from horizon_rl.viewer.page import Page
from horizon_rl.viewer.readout import write_readout
from horizon_rl.viewer.session import KEY_STEP, MAX_COMMAND, Readout
from horizon_rl.viewer.setup import ground_of, middle_values, named_grounds

COMMANDS = ("forward, m/s", "left, m/s", "turn, rad/s")
KEYS = {"I": (0, 1), "K": (0, -1), "J": (1, 1), "L": (1, -1), "U": (2, 1), "O": (2, -1)}
"""Axis and sign of what a key adds to the command; drive.js has the keys that are held."""
HELP = (
    "Hold **W S** or **up down** to walk, **A D** to step aside, **Q E** or **left right** "
    "to turn, **shift** for fast. **I K**, **J L**, **U O** change the command by a step. "
    "**P** push, **space** stop, **R** reset, **C** recentre. A gamepad drives too; the "
    "mouse moves the camera."
)
SLIDER_STEPS = 200
"""A parameter's slider goes through its limits in so many steps."""


class Panel:
    """Builds the controls, and keeps them and the session in step."""

    def __init__(self, page: Page, policies: Sequence[str], source: str):
        """Fill the page.

        Args:
            page: Shows the session.
            policies: To choose from, as `load_policy` takes them.
            source: The one that the session has.
        """
        self._page, self._session, self._gui = page, page.session, page.server.gui
        self._sessions = page.sessions
        self._source, self._mastered = source, read_mastered(source)
        self._rng = np.random.default_rng(0)
        self._readout = self._gui.add_html("")
        # Controls, what they accept, and what reads their value from the session; the
        # command's first.
        self._shown: list[tuple[Any, Callable[[Any], Any], Callable[[], Any]]] = []
        tabs = self._gui.add_tab_group()
        with tabs.add_tab("Drive"):
            self._add_drive()
        with tabs.add_tab("Body"):
            self._add_body(policies, source)
        with tabs.add_tab("Physics"):
            self._add_physics()
        self._sync()
        page.on_readout, page.on_ask = self._show, self._do

    def _add_drive(self) -> None:
        session, pace, gui = self._session, self._page.pace, self._gui
        gui.add_markdown(HELP)
        for axis, name in enumerate(COMMANDS):
            self._on(
                gui.add_slider(name, -MAX_COMMAND, MAX_COMMAND, 0.05, 0.0),
                partial(self._all, "steer", axis),
                lambda axis=axis: session.command[axis],
            )
        self._button("Stop", self._halt, "space")
        for key, (axis, sign) in KEYS.items():
            label = f"{COMMANDS[axis]} {sign * KEY_STEP:+g}"
            self._key(label, key, partial(self._all, "nudge", axis, sign))
        with gui.add_folder("Push"):
            self._strength, self._direction = map(
                self._keep,
                (
                    gui.add_slider("strength, m/s", 0.0, 5.0, 0.1, 0.5),
                    gui.add_slider("toward, degrees", -180, 180, 15, 90),
                ),
            )
            self._button("Push", self._push, "P")
        with gui.add_folder("Run"):
            self._button("Reset", partial(self._all, "reset"), "R")
            self._button("Recentre the camera", self._page.recentre, "C")
            if session.setup.scenario:
                self._button("Replay the scenario", partial(self._all, "replay"))
            auto = gui.add_checkbox("stand up after a fall", session.auto_reset)
            speed = gui.add_slider("pace", 0.1, 2.0, 0.1, 1.0, marks=((1.0, "real"),))
            for control, owners, name in (
                (auto, self._sessions, "auto_reset"),
                (gui.add_checkbox("pause", False), [pace], "paused"),
                (speed, [pace], "speed"),
            ):
                self._on(
                    control,
                    partial(_set_all, owners, name),
                    partial(getattr, owners[0], name),
                )

    def _add_body(self, policies: Sequence[str], source: str) -> None:
        gui, session = self._gui, self._session
        policy = gui.add_dropdown("policy", policies, initial_value=source)
        self._on(policy, self._use_policy, lambda: self._source)
        robots = list(dict.fromkeys((session.body.robot, *preset_names())))
        self._on(
            gui.add_dropdown("robot", robots),
            lambda robot: self._all("change_body", BodyVariant(robot=robot)),
            lambda: session.body.robot,
        )
        # A page shows one ground, and two robots are at two places of it.
        if set(SIZES) <= set(session.values) and len(self._sessions) == 1:
            self._on(
                gui.add_dropdown("ground", ["", *named_grounds()]),
                lambda name: name and self._all("set_values", named_grounds()[name]),
                lambda: ground_of(session.values),
            )
        with gui.add_folder("Interventions"):
            for name in INTERVENTIONS:
                self._on(
                    gui.add_checkbox(name, False),
                    lambda present, name=name: self._all(
                        "change_body", session.body.with_intervention(name, present)
                    ),
                    lambda name=name: name in session.body.interventions,
                )
        with gui.add_folder("Payload"):
            for name, label, low, high, step in (
                ("payload_kg", "mass, kg", 0.0, 15.0, 0.5),
                ("payload_x_m", "ahead, m", -0.3, 0.3, 0.02),
            ):
                self._on(
                    gui.add_slider(label, low, high, step, 0.0),
                    partial(self._set_payload, name),
                    lambda name=name: getattr(session.body, name),
                )

    def _add_physics(self) -> None:
        gui, session = self._gui, self._session
        baseline = middle_values(session.setup.catalogue)
        self._sliders: list[tuple[str, Any]] = []
        self._button("Back to the baseline", partial(self._all, "set_values", baseline))
        for group in session.setup.catalogue.groups:
            with gui.add_folder(group.name, expand_by_default=False):
                for parameter in group.parameters:
                    self._add_parameter(f"{group.name}.{parameter.name}", parameter)
                level = self._keep(gui.add_slider("level", 0.0, 1.0, 0.05, 0.5))
                draw = partial(self._draw, group.name, level)
                self._button(f"Draw {group.name} at this level", draw)

    def _add_parameter(self, name: str, parameter: Parameter) -> None:
        """Add a slider for each axis, or one for all that a parameter draws."""
        limit, middle = parameter.limit, parameter.baseline.middle
        if name == PUSH or limit.width == 0.0:
            return  # Pushes have sliders of their own; a constant needs none.
        unit = f", {parameter.unit}" if parameter.unit else ""
        step = float(f"{limit.width / SLIDER_STEPS:.1g}")
        for number, axis in enumerate(AXES if parameter.draws == len(AXES) else ("",)):
            label = f"{parameter.name} {axis}".replace("_", " ").rstrip() + unit
            place = number if axis else slice(None)
            slider = self._gui.add_slider(
                *(label, limit.low, limit.high, step, middle),
                marks=((middle, "baseline"),),
                hint=f"{parameter.about}; baseline {parameter.baseline}, limit {limit}",
            )
            self._on(
                slider,
                partial(self._set_parameter, name, place),
                # The mean where a slider stands for several values.
                lambda place=place: np.mean(self._session.values[name][place]),
            )
            self._sliders.append((name, slider))

    # What they do, between two steps.

    def _all(self, name: str, *args: Any) -> None:
        """Do the same to all sessions: those that are compared stay alike."""
        for session in self._sessions:
            getattr(session, name)(*args)

    def _do(self, wish: np.ndarray | str) -> None:
        """Do what the driving script asks for."""
        if isinstance(wish, str):
            reset = partial(self._all, "reset")
            self._try({"push": self._push, "stop": self._halt, "reset": reset}[wish])
        else:
            self._try(partial(self._all, "drive", wish))

    def _halt(self) -> None:
        self._all("drive", np.zeros(3))

    def _push(self) -> None:
        angle = np.deg2rad(self._direction.value)
        push = self._strength.value * np.array((np.cos(angle), np.sin(angle)))
        if PUSH in self._session.values:
            # As a parameter: so it is scaled to the body, and has a level.
            values = np.resize(push, self._session.values[PUSH].shape)
            self._all("set_values", {PUSH: values})
            push = self._session.planned_push
        self._all("push", push)

    def _use_policy(self, source: str) -> None:
        self._session.use_policy(load_policy(source))
        self._source, self._mastered = source, read_mastered(source)

    def _set_payload(self, name: str, value: float) -> None:
        self._all("change_body", replace(self._session.body, **{name: value}))

    def _set_parameter(self, name: str, place: int | slice, value: float) -> None:
        values = self._session.values[name].copy()
        values[place] = value
        self._all("set_values", {name: values})

    def _draw(self, group: str, level: Any) -> None:
        """Draw a group's values from its ranges at the level of a slider."""
        catalogue = self._session.setup.catalogue
        drawn = sample(catalogue, catalogue.ranges({group: level.value}), 1, self._rng)
        own = (name for name in drawn if name.startswith(f"{group}."))
        self._all("set_values", {name: np.ravel(drawn[name]) for name in own})

    # What they show.

    def _show(self) -> None:
        session = self._session
        levels = compare_levels(session.setup.catalogue, session.values, self._mastered)
        factor = self._page.pace.real_time_factor()
        self._readout.content = write_readout(
            session.readout(), levels, factor, self._compared()
        )
        if session.driven is None:
            self._sync(num_controls=len(COMMANDS))

    def _compared(self) -> list[tuple[str, Readout]]:
        """Return who is seen, where there are several."""
        several = self._sessions if len(self._sessions) > 1 else []
        return [(session.policy.name, session.readout()) for session in several]

    def _sync(self, dragged: Any = None, num_controls: int | None = None) -> None:
        """Bring the controls to what the session is, but not one under a user's hand."""
        for control, accept, read in self._shown[:num_controls]:
            if control is not dragged:
                control.value = accept(read())

    # How they are wired. Any: viser's controls share no public class.

    def _on(
        self, control: Any, work: Callable[[Any], None], read: Callable[[], Any]
    ) -> None:
        """Do `work` with a control's value when a user has changed it.

        `read` returns the value that the control should show.
        """
        accept = _acceptance(control)
        self._shown.append((control, accept, read))

        def update(event: viser.GuiEvent) -> None:
            # What this code sets has no client.
            if event.client is None:
                return
            sent = control.value

            def apply() -> None:
                value = accept(sent)
                if value != sent:
                    control.value = value
                work(value)

            self._page.do(lambda: self._try(apply, control))

        control.on_update(update)

    def _keep(self, slider: Any) -> SimpleNamespace:
        """Return what holds a slider's last value, for work that reads it later."""
        kept = SimpleNamespace(value=slider.value)
        self._on(slider, partial(setattr, kept, "value"), lambda: kept.value)
        return kept

    def _button(self, label: str, work: Callable[[], None], key: Any = None) -> None:
        button = self._gui.add_button(f"{label} ({key})" if key else label)
        button.on_click(lambda _: self._page.do(lambda: self._try(work)))
        if key:
            self._key(label, key, work)

    def _key(self, label: str, key: Any, work: Callable[[], None]) -> None:
        command = self._gui.add_command(label, hotkey=key)
        command.on_trigger(lambda _: self._page.do(lambda: self._try(work)))

    def _try(self, work: Callable[[], None], dragged: Any = None) -> None:
        """Do it, and show what came of it; what is refused is said and changes nothing."""
        try:
            work()
        except InputError as error:
            self._page.tell("not possible", str(error))
            dragged = None
        self._page.show()
        self._sync(dragged)


def _set_all(owners: Sequence[Any], name: str, value: Any) -> None:
    for owner in owners:
        setattr(owner, name, value)


def _acceptance(control: Any) -> Callable[[Any], Any]:
    """Return what makes a value of this control of what a browser has sent, or refuses.

    By its choices and ends as they are now: a browser can change its own copies.
    """
    if isinstance(control, viser.GuiDropdownHandle):
        choices = tuple(control.options)

        def choose(value: Any) -> str:
            if value not in choices:
                raise InputError(unknown("choice", str(value), choices))
            return value

        return choose
    if isinstance(control, viser.GuiSliderHandle):
        low, high = control.min, control.max

        def clip(value: Any) -> float:
            if not isfinite(value):
                raise InputError(f"{value} is no finite number")
            # In the box beside a slider one can type what lies beyond its ends.
            return min(max(float(value), low), high)

        return clip
    return bool
