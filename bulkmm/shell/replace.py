# SPDX-License-Identifier: GPL-2.0-only
"""Commands that end by running another in their place."""

import os
import signal
from collections.abc import Sequence

from bulkmm.shell.errors import BulkmmError


def replace_process(words: Sequence[str], fd: int) -> None:
    """Replace this process by a command, whose {} is the path of a descriptor."""
    os.set_inheritable(fd, True)  # noqa: FBT003 - its only argument
    place = f"/proc/self/fd/{fd}"
    command = [word.replace("{}", place) for word in words]
    for signum in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
        signal.signal(signum, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606 - what was asked for
    except OSError as error:
        raise BulkmmError(f"{command[0]}: {error.strerror}") from error
