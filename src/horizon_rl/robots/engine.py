"""MuJoCo's messages: kept from terminals and files."""
# MuJoCo's extension modules carry no type stubs.
# pyright: reportAttributeAccessIssue=false

import mujoco


def silence_engine() -> None:
    """Keep MuJoCo from writing warnings to the terminal and into MUJOCO_LOG.TXT.

    What goes wrong in a world is in the counters, and what is wrong with a file is
    found by reading it. A handler of the user's own stays.
    """
    if mujoco.get_mju_user_warning() is None:
        mujoco.set_mju_user_warning(lambda message: None)
