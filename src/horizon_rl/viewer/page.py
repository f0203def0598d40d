"""The page in the browser: the scene, and the loop that moves the robot in it.

One thread simulates. What a user does on the page arrives on others, so it is put into
a queue and done between two steps: a session never changes in the middle of one.
"""

import socket
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from queue import SimpleQueue
from secrets import token_urlsafe

import numpy as np

from horizon_rl.physics import cores_for_physics
from horizon_rl.robots import Ground
from horizon_rl.robots.terrain import Terrain
from horizon_rl.support.addresses import page_url
from horizon_rl.support.errors import InputError, needs_extra
from horizon_rl.viewer.driving import Ask
from horizon_rl.viewer.figure import Figure
from horizon_rl.viewer.guard import guarded
from horizon_rl.viewer.session import Pace, Session

with needs_extra("viewer"):
    import viser

FRAME_S = 1.0 / 50.0
READOUT_S = 0.2
SKY = (232, 238, 245)
GROUND = (205, 210, 218)
PHONE_ASPECT, PHONE_AWAY = 0.6, 1.3
"""Width to height below which the controls lie over the scene, not beside it; and how
much further off one looks then."""
APART_LEGS = 2.4
"""Between two robots that are shown side by side, in lengths of a leg."""


class Page:
    """A session in the browser."""

    def __init__(
        self, session: Session, host: str, port: int, rival: Session | None = None
    ):
        """Serve at once; `run` moves the robot.

        Args:
            session: The robot that the page is about.
            host: Address to serve on.
            port: The next free one is taken if it is not.
            rival: Another, of the same setup, that is shown beside it.
        """
        self.session, self.pace = session, Pace()
        self.sessions = [session, *filter(None, [rival])]
        _check_address(host)
        self._todo: SimpleQueue[Callable[[], None]] = SimpleQueue()
        token = token_urlsafe(16)
        # It prints a banner; who starts a page says where it is in their own way.
        with redirect_stdout(StringIO()), guarded(token, host, self._ask):
            self.server = viser.ViserServer(host, port, "horizon play", verbose=False)
        self.port = self.server.get_port()
        self.url = page_url(host, self.port, f"{token}/")
        """Where it is; whoever knows it can drive."""
        self.on_readout: Callable[[], None] = lambda: None
        """Called a few times a second, between two steps."""
        self.on_ask: Ask = lambda wish: None
        """Does what the driving script asks for, between two steps."""
        self._stopped = False
        self._relief: viser.MeshHandle | None = None
        self._ground: Ground | None = None
        self._set_stage()
        apart = APART_LEGS * session.robot.leg_length_m * (len(self.sessions) - 1)
        self._figures = [
            Figure(self.server, each, f"/robot{number}", apart * (0.5 - number))
            for number, each in enumerate(self.sessions)
        ]
        self.show()

    def do(self, work: Callable[[], None]) -> None:
        """Have something done between two steps; from any thread."""
        self._todo.put(work)

    def _ask(self, wish: np.ndarray | str) -> None:
        self.do(lambda: self.on_ask(wish))

    def recentre(self) -> None:
        """Bring everybody's camera back to where it was at first."""
        for client in self.server.get_clients().values():
            self._aim(client)

    def _aim(self, client: viser.ClientHandle) -> None:
        """Look at the robot; on a phone from further off, above the sheet of controls."""
        camera, start = client.camera, self.server.initial_camera
        position, look_at = np.array(start.position), np.array(start.look_at)
        if camera.aspect < PHONE_ASPECT:
            look_at[2] -= position[2]
            position *= PHONE_AWAY
        with client.atomic():
            camera.position, camera.look_at = position, look_at

    def stop(self) -> None:
        """End `run`; from any thread."""
        self._stopped = True

    def run(self) -> None:
        """Simulate in real time until stopped."""
        last_readout = 0.0
        with cores_for_physics(self.session.env.backend):
            while not self._stopped:
                began = time.perf_counter()
                while not self._todo.empty():
                    self._todo.get()()
                if self.pace.advance(*self.sessions):
                    self.show()
                if began - last_readout >= READOUT_S:
                    last_readout = began
                    self.on_readout()
                time.sleep(max(0.001, FRAME_S - (time.perf_counter() - began)))
        self.server.stop()

    def tell(self, title: str, body: str) -> None:
        """Show everybody a note, for a while."""
        for client in self.server.get_clients().values():
            client.add_notification(title, body, auto_close_seconds=6.0)

    def show(self) -> None:
        """Show everything as it is now."""
        with self.server.atomic():
            ground = self.session.robot.ground
            if ground != self._ground:
                self._lay(ground)
            origin, *_ = [figure.show() for figure in self._figures]
            for figure in self._figures[1:] and self._figures:
                figure.show_name()
            self._floor.position = (*-(origin[:2] % 1.0), 0.0)
            if self._relief:
                self._relief.position = -origin

    def _lay(self, ground: Ground) -> None:
        """Show the ground: a plane's grid, or the relief of a patch."""
        self._ground = ground
        self._floor.visible = ground.is_plane
        if self._relief:
            self._relief.remove()
            self._relief = None
        if isinstance(ground, Terrain):
            corners, faces = relief(ground)
            self._relief = self.server.scene.add_mesh_simple(
                "/ground",
                corners.astype(np.float32),
                faces.astype(np.uint32),
                color=GROUND,
                flat_shading=True,
            )

    def _set_stage(self) -> None:
        server, scene = self.server, self.server.scene
        server.gui.configure_theme(
            control_width="large", show_logo=False, show_share_button=False
        )
        server.gui.main_panel.dock_right()
        scene.set_up_direction("+z")
        scene.set_background_image(np.full((2, 2, 3), SKY, np.uint8))
        self._floor = scene.add_grid(
            "/floor",
            width=24.0,
            height=24.0,
            cell_size=0.5,
            section_size=1.0,
            cell_color=(225, 228, 233),
            section_color=(165, 172, 182),
            plane_color=(250, 250, 252),
            plane_opacity=1.0,
            shadow_opacity=0.25,
        )
        size = self.session.robot.leg_length_m
        server.initial_camera.position = (3.0 * size, 3.0 * size, 1.9 * size)
        server.initial_camera.look_at = (0.0, 0.0, 0.5 * size)
        server.on_client_connect(self._aim)


def _check_address(host: str) -> None:
    """Refuse an address that is not this machine's: viser would wait for ever."""
    try:
        family, *_, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind(address)
    except OSError as error:
        raise InputError(
            f"cannot serve on '{host}': {error.strerror or error}. Accepted: an address "
            "of this machine, as 127.0.0.1 or 0.0.0.0"
        ) from error


def relief(ground: Terrain) -> tuple[np.ndarray, np.ndarray]:
    """Return corners [n, 3] and triangles [m, 3] of a ground's patch, three periods wide."""
    reach = 1.5 * ground.period_m
    cells = ground.patches[ground.patch][0].cell_m
    x, y = (np.arange(-reach, reach + cell / 2.0, cell) for cell in cells)
    places = np.stack(np.meshgrid(x, y), axis=-1)
    heights = ground.height_at(places)
    number = np.arange(heights.size).reshape(heights.shape)
    near, ahead = number[:-1, :-1].ravel(), number[:-1, 1:].ravel()
    aside, far = number[1:, :-1].ravel(), number[1:, 1:].ravel()
    faces = np.stack([near, ahead, far, near, far, aside], axis=1).reshape(-1, 3)
    corners = np.concatenate([places, heights[..., None]], axis=-1).reshape(-1, 3)
    return corners, faces
