# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm pool serve`` under systemd itself, by the units of the package.

By a manager of a user. It has a /run of its own, as another program may be init here;
and a cgroup and process numbers of its own, as a manager moves what it finds beside
itself into other cgroups: it can name no process of the machine.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from commandlib import ROOT
from programs import run_command
from rootlib import needs_root
from servelib import MIB, Running, list_children, short_directory, wait_until

from bulkmm.populate.libbulkmm import pool

MANAGER = "/lib/systemd/systemd"
CGROUPS = Path("/sys/fs/cgroup")
# in namespaces of its own; the arguments are its cgroups
SCRIPT = f"""
for group; do echo 0 >"$group/cgroup.procs" || exit; done
mount -t tmpfs none /run && mkdir -p /run/systemd/system || exit
{MANAGER} --user --unit=basic.target &
wait
"""
NAMESPACES = ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
SOCKET, SERVICE = "bulkmm-serve.socket", "bulkmm-serve.service"
CONTENT = b"kept" * (MIB // 4)


@dataclass
class Manager:
    """A systemd, the process that its namespaces have as first, and its socket."""

    pid: int
    environment: dict[str, str]
    path: str

    def control(self, *words: str) -> str:
        """Return what systemctl says."""
        inside = ["nsenter", "-t", str(self.pid), "--mount", "--pid"]
        command = [*inside, "systemctl", "--user", *words]
        return run_command(command, env=self.environment).stdout.strip()

    def read(self, name: str) -> int:
        """Return a number that systemd has of the service."""
        return int(self.control("show", "-P", name, SERVICE))

    def states(self) -> list[str]:
        """Return the states of all memories."""
        return Running.states(self)  # type: ignore[arg-type]

    def status(self) -> dict[str, object]:
        """Return the server's status, for states()."""
        return pool.status(path=self.path)


def write_units(place: Path) -> Path:
    """Write the package's units, for this command and a socket of the test's own."""
    units = place / "units"
    units.mkdir()
    command = f"{sys.executable} -m bulkmm.cli"
    for name in (SOCKET, SERVICE):
        text = (ROOT / "debian" / f"bulkmm.{name}").read_text()
        for old, new in (
            ("/run/bulkmm/pool.sock", f"{place}/pool"),
            ("/usr/bin/bulkmm", command),
            ("[Service]\n", f"[Service]\nEnvironment=PYTHONPATH={ROOT}\n"),
            ("ProtectHome=yes\n", ""),  # this command may be there
        ):
            text = text.replace(old, new)
        (units / name).write_text(text)
    return units


@contextmanager
def make_cgroups(name: str) -> Iterator[list[Path]]:
    """Make a cgroup in each hierarchy that systemd itself uses."""
    roots = [CGROUPS, CGROUPS / "systemd", CGROUPS / "unified"]
    groups = [root / name for root in roots if (root / "cgroup.procs").exists()]
    try:
        for group in groups:
            group.mkdir()
        yield groups
    finally:  # also those that it has made of other controllers
        for top in {*groups, *CGROUPS.glob(f"*/{name}")}:
            wait_until(lambda top=top: remove_cgroup(top))


def remove_cgroup(top: Path) -> bool:
    """Remove a cgroup, and those in it; tell whether it worked."""
    try:
        for place, _, _ in os.walk(top, topdown=False):
            Path(place).rmdir()
    except OSError:
        return False
    return True


@contextmanager
def run_manager() -> Iterator[Manager]:
    """Have a systemd with the units, and the socket started."""
    needs_root()
    if not (Path(MANAGER).exists() and shutil.which("systemctl")):
        pytest.skip("systemd is not installed")
    with short_directory() as place, make_cgroups(place.name) as groups:
        environment = {
            **os.environ,
            "XDG_RUNTIME_DIR": f"{place}/run",
            "SYSTEMD_UNIT_PATH": f"{write_units(place)}:",
        }
        (place / "run").mkdir(mode=0o700)
        with subprocess.Popen(
            ["unshare", *NAMESPACES, "sh", "-c", SCRIPT, "sh", *groups],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
        ) as process:
            private = place / "run/systemd/private"
            try:
                wait_until(lambda: private.exists() or process.poll() is not None)
                if not private.exists():
                    pytest.skip("systemd does not run here")
                (first,) = list_children(process.pid)
                manager = Manager(first, environment, f"{place}/pool")
                manager.control("start", SOCKET)
                yield manager
            finally:
                process.kill()  # and with it all of its namespace


def test_the_units_serve_and_keep_what_has_a_name() -> None:
    with run_manager() as manager:
        assert Path(manager.path).stat().st_mode & 0o7777 == 0o600
        assert manager.read("MainPID") == 0
        with pool.take(MIB, name="cache", path=manager.path) as lease:
            lease.map()[:] = CONTENT
        assert manager.read("MainPID") > 0
        second = pool.take(2 * MIB, path=manager.path)
        second.map()[:MIB] = CONTENT
        wait_until(lambda: manager.states() == ["kept", "leased"])
        manager.control("kill", "--signal=KILL", "--kill-who=main", SERVICE)
        assert manager.states() == ["kept", "leased"]
        assert manager.read("NRestarts") == 1
        manager.control("restart", SERVICE)
        with pool.take(MIB, name="cache", path=manager.path) as lease:
            assert lease.has_content
            assert lease.map()[:] == CONTENT
        assert second.map()[:MIB] == CONTENT
        second.close()
        wait_until(lambda: manager.states() == ["kept"])
        manager.control("stop", SERVICE)
        assert manager.states() == []  # another server, started by the connection
