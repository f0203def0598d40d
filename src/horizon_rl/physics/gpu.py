"""The GPU backend: MuJoCo Warp, a control step as one CUDA graph.

Nothing in `reset`, `push` or `step` waits for the device or runs Python per physics
step. All work goes to torch's current stream, so that torch and Warp see each other's
results without waiting. On the device "cpu" the same kernels run one by one: for tests.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from math import isfinite
from typing import Any

import mujoco_warp as mjw
import torch
import warp as wp

from horizon_rl.physics import gpu_kernels as kernels
from horizon_rl.physics import gpu_model
from horizon_rl.physics.backend import Counters, allocate_state
from horizon_rl.physics.draft import WORLD_FIELDS, check_same_structure
from horizon_rl.physics.motors import with_servos
from horizon_rl.physics.pool import Pool
from horizon_rl.physics.rates import PHYSICS_STEPS
from horizon_rl.physics.select import check_device
from horizon_rl.robots import Robot
from horizon_rl.support.errors import InputError

# By default Warp prints a greeting and every module it loads.
wp.config.log_level = max(wp.config.log_level, wp.LOG_WARNING)

ITERATIONS, LS_ITERATIONS, TOLERANCE = 8, 10, 1e-5
"""The solver's caps and tolerance. With all groups wide open and random actions 0.4 % of
the world-steps end at the cap. 20, 50 and 1e-6, as on the CPU, bring a trot from 4 to 2
micrometres of the CPU's and take 1.24 times as long: docs/results.md has the table."""

KEPT = ("qpos", "qvel", "act", "ctrl", "qacc_warmstart", "xfrc_applied", "time")
"""The engine's state: what the next step starts from."""

LAGGING = ("sensordata", "actuator_force")
"""Forces lag one physics step: no state holds them, yet the task sees them."""


class GpuBackend:
    """n worlds on one GPU."""

    def __init__(
        self,
        robot: Robot,
        num_worlds: int,
        device: str | torch.device = "cuda:0",
        *,
        contacts_per_world: int = 0,
        constraints_per_world: int = 0,
    ):
        """Allocate the worlds, compile the kernels, capture the control step.

        Args:
            robot: Template of all bodies that the worlds may have.
            num_worlds: How many.
            device: "cuda", "cuda:1", ...; "cpu" runs Warp's kernels on the CPU.
            contacts_per_world: Room for contacts, which all worlds share; 0: the most
                that the body can have, so that none is ever lost.
            constraints_per_world: Room for rows of constraints in each world; 0: the
                most there can be.
        """
        if num_worlds < 1:
            raise InputError(f"{num_worlds} worlds; at least 1 is needed")
        self.robot = robot
        self.num_worlds = num_worlds
        self.device = check_device(device)
        self._room = contacts_per_world, constraints_per_world
        self._stream: wp.Stream | None = None
        self._graph: wp.Graph | None = None
        self._model: Any = None
        self._data: Any = None
        with self._refusals():
            self.state = allocate_state(num_worlds, self.device)
            self.torque_bounds = torch.zeros((num_worlds, 12, 2), device=self.device)
            """[n, 12, 2] least and largest torque in the last physics step, N m."""
            self._targets = torch.zeros((num_worlds, 12), device=self.device)
            self._upset = torch.zeros(num_worlds, dtype=torch.bool, device=self.device)
            self._counts = torch.zeros(2, dtype=torch.int64, device=self.device)
            self._build(frozenset(WORLD_FIELDS))

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Say why worlds cannot be made, where it is the user's to change."""
        try:
            yield
        except (NotImplementedError, RuntimeError) as error:
            # Torch and Warp have no type of their own for a lack of memory.
            reason = str(error).lower()
            if isinstance(error, NotImplementedError):
                problem = f"mujoco_warp cannot simulate '{self.robot.name}' ({error})"
                raise InputError(f"{problem}: take device 'cpu'") from error
            if "out of memory" in reason or "failed to allocate" in reason:
                problem = f"{self.num_worlds} worlds do not fit into the memory"
                raise InputError(f"{problem} of {self.device}: try fewer") from error
            raise

    def _build(self, varying: frozenset[str]) -> None:
        """Make the engine's worlds, which differ in the model fields `varying`."""
        self._varying = varying
        self._graph = self._model = self._data = None  # Two at once may not fit.
        counts = self._counts.clone()
        with wp.ScopedDevice(str(self.device)):
            self._make_model()
            self._make_data()
            self._make_arguments()
            self._try_out()
        self._counts.copy_(counts)  # A trial is no control step of a world.

    def _make_model(self) -> None:
        self._compiled = with_servos(self.robot.model)
        columns = gpu_model.columns_of_model(self._compiled, sorted(self._varying))
        self._layout = gpu_model.RowLayout(columns)
        self._table = self._layout.pack(columns).to(self.device)
        self._rows = self._table.repeat(self.num_worlds, 1)
        world = self._layout.split(self._rows)
        state = gpu_model.STATE_COLUMNS
        self._world = {name: wp.from_torch(world[name]) for name in state}
        self._model = gpu_model.put_worlds(self._compiled, world)
        bounds = wp.from_torch(self.torque_bounds, dtype=wp.vec2)
        self._model.actuator_forcerange = bounds
        option = self._model.opt
        option.iterations, option.ls_iterations = ITERATIONS, LS_ITERATIONS
        option.tolerance.fill_(TOLERANCE)
        # A loop in the graph, which ends when all worlds have converged, waits for the
        # device's answer in every round.
        option.graph_conditional = False

    def _make_data(self) -> None:
        compiled, model = self._compiled, self._model
        contacts, constraints = self._room
        contacts = contacts or gpu_model.most_contacts(model)
        most = gpu_model.most_constraints(compiled, model, contacts, self._varying)
        self._data = mjw.make_data(
            compiled,
            self.num_worlds,
            nconmax=contacts,
            nccdmax=gpu_model.most_searches(model) or None,
            njmax=constraints or most,
        )
        arrays = {name: getattr(self._data, name) for name in KEPT + LAGGING}
        # Robots without activations have an empty array of them, which torch refuses.
        self._engine = {k: wp.to_torch(a) for k, a in arrays.items() if a.size}

    def _make_arguments(self) -> None:
        """Wrap once what the kernels of every step take."""
        robot = self.robot
        self._kept = {"rows": self._rows, "upset": self._upset, **self._engine}
        self._upset_in = wp.from_torch(self._upset)
        self._targets_in = wp.from_torch(self._targets)
        self._counts_in = wp.from_torch(self._counts)
        state = [getattr(self.state, field.name) for field in fields(self.state)]
        self._outputs = list(map(wp.from_torch, state))
        self._dofs = wp.array(robot.dof_adr, dtype=int)
        self._positions = wp.array(robot.qpos_adr, dtype=int)
        self._sign = wp.array(robot.joint_sign, dtype=float)
        self._offset = wp.array(robot.joint_offset_rad, dtype=float)
        self._feet = wp.array(robot.foot_sensor_adr, dtype=int)

    @property
    def counters(self) -> Counters:
        """Read the counters from the device: the one call that waits for it."""
        unhealthy, overflow = self._counts.tolist()
        return Counters(unhealthy=unhealthy, overflow=overflow)

    def load(self, pool: Pool) -> None:
        check_same_structure([self.robot, pool.robot])
        if pool.fields.keys() != self._varying:
            with self._refusals():
                self._build(frozenset(pool.fields))
        columns = gpu_model.columns_of_pool(pool)
        self._table = self._layout.pack(columns).to(self.device)

    def reset(self, mask: torch.Tensor, rows: torch.Tensor) -> None:
        chosen = wp.from_torch(mask.to(self.device))
        row = wp.from_torch(rows.to(self.device, torch.int64))
        table, world = wp.from_torch(self._table), wp.from_torch(self._rows)
        with self._scope():
            wp.launch(kernels.take_rows, world.shape, [chosen, row, table, world])
            self._start(chosen)
            self._read()

    def step(self, targets: torch.Tensor) -> None:
        self._targets.copy_(targets)
        if self._graph is None:
            with self._scope():
                self._advance()
        elif torch.cuda.is_current_stream_capturing():
            # Part of a larger graph, which the caller is recording.
            with (
                self._scope() as stream,
                wp.ScopedCapture(stream=stream, external=True),
            ):
                self._advance()
        else:
            wp.capture_launch(self._graph, self._torch_stream())

    def push(self, velocity: torch.Tensor) -> None:
        qvel = self._engine["qvel"]
        qvel[:, :2] += velocity.to(self.device)
        self.state.linear_velocity.copy_(qvel[:, :3])

    def snapshot(self) -> dict[str, torch.Tensor]:
        return {name: values.clone() for name, values in self._kept.items()}

    def restore(self, snapshot: dict[str, torch.Tensor]) -> None:
        for name, values in self._kept.items():
            values.copy_(snapshot[name])
        with self._scope():
            self._read()

    def _advance(self) -> None:
        """Enqueue one control step on Warp's current stream; captures nothing."""
        model, data, world, n = self._model, self._data, self._world, self.num_worlds
        aims = [self._targets_in, self._offset, data.ctrl, self._upset_in]
        motors = [data.qvel, self._dofs, self._sign, world["effort"]]
        motors += [world["velocity_limit"], model.actuator_forcerange]
        repaired = [model.qpos0, data.qpos, data.qvel, data.qacc, data.qacc_warmstart]
        repaired += [data.efc.J, data.efc.D, self._upset_in]
        wp.launch(kernels.aim, n, aims)
        for _ in range(PHYSICS_STEPS):
            # Before the step too: a push may be bad.
            wp.launch(kernels.repair_worlds, n, repaired)
            wp.launch(kernels.bound_torques, (n, 12), motors)
            mjw.step(model, data)
        wp.launch(kernels.repair_worlds, n, repaired)
        if isfinite(self.robot.ground.period_m):
            wp.launch(kernels.put_back, n, [self.robot.ground.period_m, data.qpos])
        self._read()
        healthy = self._outputs[-1]
        wp.launch(kernels.count, n, [healthy, data.overflow, self._counts_in])

    def _start(self, mask: wp.array) -> None:
        data, world = self._data, self._world
        wp.launch(
            kernels.start_worlds,
            self.num_worlds,
            [mask, world["start_qpos"], world["start_qvel"], world["wrench"]]
            + [self.robot.trunk_body_id, data.qpos, data.qvel, data.act, data.ctrl]
            + [data.qacc, data.qacc_warmstart, data.xfrc_applied, data.time]
            + [data.sensordata, data.actuator_force, data.overflow, self._upset_in],
        )

    def _read(self) -> None:
        data = self._data
        wp.launch(
            kernels.read_state,
            self.num_worlds,
            [data.qpos, data.qvel, data.actuator_force, data.sensordata]
            + [self._upset_in, self._positions, self._dofs, self._sign, self._offset]
            + [self._feet, self.robot.trunk_sensor_adr, *self._outputs],
        )

    def _try_out(self) -> None:
        """Step once, which compiles the kernels; on a GPU record a control step.

        On a stream of its own: torch's may be CUDA's default, which cannot be captured.
        """
        everyone = wp.ones(self.num_worlds, dtype=wp.bool)
        on_gpu = self.device.type == "cuda"
        if on_gpu:
            torch.cuda.synchronize(self.device)
        own = wp.ScopedStream(wp.Stream(str(self.device))) if on_gpu else nullcontext()
        with own as stream:
            self._start(everyone)
            self._advance()
            if stream is not None:
                self._graph = self._record(stream)
            self._start(everyone)
            if stream is not None:
                wp.synchronize_stream(stream)

    def _record(self, stream: wp.Stream) -> wp.Graph:
        """Capture a control step; launch it, so that a lack of memory shows here."""
        with wp.ScopedCapture(stream=stream) as capture:
            self._advance()
        assert capture.graph is not None
        wp.capture_launch(capture.graph)
        return capture.graph

    def _scope(self) -> wp.ScopedStream | wp.ScopedDevice:
        """Send Warp's work to torch's current stream."""
        if self.device.type == "cpu":
            return wp.ScopedDevice("cpu")
        return wp.ScopedStream(self._torch_stream(), sync_enter=False)

    def _torch_stream(self) -> wp.Stream:
        stream = torch.cuda.current_stream(self.device)
        if self._stream is None or self._stream.cuda_stream != stream.cuda_stream:
            self._stream = wp.stream_from_torch(stream)
        return self._stream
