"""The page's controls: everything a user can change, and what the session shows."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import viser

from horizon_rl.evaluation.suite import PUSH
from horizon_rl.policies.load import load_policy
from horizon_rl.robots import INTERVENTIONS, preset_names
from horizon_rl.support.errors import InputError
from horizon_rl.viewer.body_variant import BodyVariant
from horizon_rl.viewer.knobs import Knob, add_knobs, draw_group
from horizon_rl.viewer.levels import compare_levels, read_mastered
from horizon_rl.viewer.page import Page
from horizon_rl.viewer.readout import write_readout
from horizon_rl.viewer.setup import middle_values

COMMANDS = ("forward, m/s", "left, m/s", "turn, rad/s")
MAX_COMMAND = 1.5
KEYS = {"I": (0, 1), "K": (0, -1), "J": (1, 1), "L": (1, -1), "U": (2, 1), "O": (2, -1)}
"""Axis and sign of the command; W A S D Q E and the arrows move viser's camera."""
KEY_STEP = 0.2
HELP = (
    "Keys: **I K** forward and back, **J L** left and right, **U O** turn, **P** push, "
    "**space** stop, **R** reset. The mouse and W A S D move the camera."
)
DIRECTIONS = ((-180, "back"), (-90, "right"), (0, "ahead"), (90, "left"))
MAX_PAYLOAD_KG = 15.0


class Panel:
    """Builds the controls, and keeps them and the session in step."""

    def __init__(self, page: Page, policies: Sequence[str], source: str):
        """Fill the page.

        Args:
            page: Shows the session.
            policies: To choose from, as `load_policy` takes them.
            source: The one that the session has.
        """
        self._page, self._session = page, page.session
        self._gui = page.server.gui
        self._mastered = read_mastered(source)
        self._rng = np.random.default_rng(0)
        self._readout = self._gui.add_html("")
        tabs = self._gui.add_tab_group()
        with tabs.add_tab("Drive"):
            self._add_drive()
        with tabs.add_tab("Body"):
            self._add_body(policies, source)
        with tabs.add_tab("Physics"):
            self._add_physics()
        self._sync()
        page.on_readout.append(self._show)

    def _add_drive(self) -> None:
        gui, page, session = self._gui, self._page, self._session
        self._command = [
            gui.add_slider(name, -MAX_COMMAND, MAX_COMMAND, 0.05, 0.0, marks=(-1, 0, 1))
            for name in COMMANDS
        ]
        for axis, slider in enumerate(self._command):
            self._on(slider, lambda value, axis=axis: self._steer(axis, value))
        self._button("Stop", lambda: session.drive(np.zeros(3)), "space")
        for key, (axis, sign) in KEYS.items():
            self._key(
                f"{COMMANDS[axis]} {sign * KEY_STEP:+g}",
                key,
                lambda axis=axis, sign=sign: self._steer(
                    axis, session.command[axis] + sign * KEY_STEP
                ),
            )
        with gui.add_folder("Push"):
            self._strength = gui.add_slider(
                *("strength, m/s", 0.0, 5.0, 0.1, 0.5),
                hint="sudden change of the trunk's velocity, scaled to the body",
            )
            self._direction = gui.add_slider(
                "toward, degrees", -180, 180, 15, 90, marks=DIRECTIONS
            )
            self._button("Push", self._push, "P", color="red")
        for slider in (self._strength, self._direction):
            self._on(slider, lambda _: None)  # A push reads them.
        with gui.add_folder("Run"):
            self._button("Reset", self._reset, "R")
            if session.setup.scenario:
                self._button("Replay the scenario", self._replay)
            auto = gui.add_checkbox("stand up after a fall", session.auto_reset)
            pause = gui.add_checkbox("pause", False)
            pace = gui.add_slider("pace", 0.1, 2.0, 0.1, 1.0, marks=((1.0, "real"),))
        self._on(auto, lambda value: setattr(session, "auto_reset", value))
        self._on(pause, lambda value: setattr(page.pace, "paused", value))
        self._on(pace, lambda value: setattr(page.pace, "speed", value))
        gui.add_markdown(HELP)

    def _add_body(self, policies: Sequence[str], source: str) -> None:
        gui, body = self._gui, self._session.body
        robots = list(dict.fromkeys((body.robot, *preset_names())))
        policy = gui.add_dropdown("policy", policies, initial_value=source)
        self._robot = gui.add_dropdown("robot", robots, initial_value=body.robot)
        self._on(policy, self._use_policy)
        self._on(self._robot, lambda robot: self._change_body(BodyVariant(robot=robot)))
        with gui.add_folder("Interventions"):
            self._boxes = {
                name: gui.add_checkbox(name, name in body.interventions)
                for name in INTERVENTIONS
            }
        for name, box in self._boxes.items():
            self._on(box, lambda value, name=name: self._intervene(name, value))
        with gui.add_folder("Payload"):
            self._payload = gui.add_slider("mass, kg", 0.0, MAX_PAYLOAD_KG, 0.5, 0.0)
            self._payload_x = gui.add_slider("ahead, m", -0.3, 0.3, 0.02, 0.0)
        self._on(self._payload, lambda kg: self._load(payload_kg=kg))
        self._on(self._payload_x, lambda x: self._load(payload_x_m=x))

    def _add_physics(self) -> None:
        gui, session = self._gui, self._session
        catalogue = session.setup.catalogue
        self._knobs: list[Knob] = []
        self._button(
            "Back to the baseline", lambda: session.set_values(middle_values(catalogue))
        )
        for group in catalogue.groups:
            with gui.add_folder(group.name, expand_by_default=False):
                for knob in add_knobs(gui, session, group):
                    self._knobs.append(knob)
                    self._on(
                        knob.slider, lambda value, knob=knob: knob.turn(session, value)
                    )
                level = gui.add_slider(
                    *("level", 0.0, 1.0, 0.05, 0.5),
                    hint="0: the baseline ranges; 1: the limits",
                )
                self._button(
                    f"Draw {group.name} at this level",
                    lambda name=group.name, level=level: draw_group(
                        session, name, level.value, self._rng
                    ),
                )

    # What they do, between two steps.

    def _steer(self, axis: int, value: float) -> None:
        command = self._session.command.copy()
        command[axis] = np.clip(round(value, 2), -MAX_COMMAND, MAX_COMMAND)
        self._session.drive(command)
        self._show_command()

    def _push(self) -> None:
        angle = np.deg2rad(self._direction.value)
        push = self._strength.value * np.array((np.cos(angle), np.sin(angle)))
        if PUSH in self._session.values:
            # As a parameter: so it is scaled to the body, and has a level.
            values = np.resize(push, self._session.values[PUSH].shape)
            self._session.set_values({PUSH: values})
            push = self._session.planned_push
        self._session.push(push)

    def _reset(self) -> None:
        self._session.reset()
        self._page.show_pose()

    def _replay(self) -> None:
        self._session.replay()
        self._page.show_robot()

    def _use_policy(self, source: str) -> None:
        self._session.use_policy(load_policy(source))
        self._mastered = read_mastered(source)

    def _intervene(self, name: str, present: bool) -> None:
        self._change_body(self._session.body.with_intervention(name, present))

    def _load(self, **changes: float) -> None:
        self._change_body(replace(self._session.body, **changes))

    def _change_body(self, body: BodyVariant) -> None:
        self._session.change_body(body)
        self._page.show_robot()

    # What they show.

    def _show(self) -> None:
        session = self._session
        reaches = compare_levels(
            session.setup.catalogue, session.values, self._mastered
        )
        factor = self._page.pace.real_time_factor()
        self._readout.content = write_readout(session.readout(), reaches, factor)
        if session.driven is None:
            self._show_command()

    def _show_command(self) -> None:
        for slider, value in zip(self._command, self._session.command, strict=True):
            slider.value = float(np.clip(value, -MAX_COMMAND, MAX_COMMAND))

    def _sync(self) -> None:
        """Bring all controls to what the session is: something else has changed it."""
        body = self._session.body
        self._show_command()
        for knob in self._knobs:
            knob.show(self._session)
        self._robot.value = body.robot
        self._payload.value = body.payload_kg
        self._payload_x.value = body.payload_x_m
        for name, box in self._boxes.items():
            box.value = name in body.interventions
        for control in (*self._boxes.values(), self._payload, self._payload_x):
            control.disabled = not body.can_change

    # How they are wired.

    def _on(self, control: Any, work: Callable[[Any], None]) -> None:
        """Do `work` with a control's value when a user has changed it."""

        @control.on_update
        def _(event: viser.GuiEvent) -> None:
            # What this code sets has no client.
            if event.client is not None:
                value = control.value
                if isinstance(control, viser.GuiSliderHandle):
                    # In the box beside it one can type what lies beyond its ends.
                    value = min(max(value, control.min), control.max)
                    if value != control.value:
                        control.value = value
                syncs = control in (self._robot, *self._boxes.values())
                self._page.do(lambda: self._try(lambda: work(value), syncs))

    def _button(
        self,
        label: str,
        work: Callable[[], None],
        key: Any = None,
        color: Any = None,
    ) -> None:
        name = f"{label} ({key})" if key else label
        button = self._gui.add_button(name, color=color)
        button.on_click(lambda _: self._page.do(lambda: self._try(work, True)))
        if key:
            self._key(label, key, work)

    def _key(self, label: str, key: Any, work: Callable[[], None]) -> None:
        command = self._gui.add_command(label, hotkey=key)
        command.on_trigger(lambda _: self._page.do(lambda: self._try(work, True)))

    def _try(self, work: Callable[[], None], syncs: bool) -> None:
        """Do it; what cannot be done is said, and changes nothing.

        A slider that is being dragged is not written to: it would jump under the hand.
        """
        try:
            work()
        except InputError as error:
            self._page.tell("not possible", str(error))
            syncs = True
        if syncs:
            self._sync()
