# SPDX-License-Identifier: GPL-2.0-only
"""Prometheus's own checker, out of Debian's package, cached in the lab's root."""

import subprocess
from pathlib import Path

from bulkmm.lab.machine import root
from bulkmm.lab.paths import locked, made_whole
from bulkmm.lab.progress import Progress

# the package depends on nothing that the program needs to check a page
FETCH = (
    'cd "$1" && apt-get -q -o APT::Sandbox::User=root download promtool && '
    "dpkg-deb --fsys-tarfile ./*.deb | tar x ./usr/bin/promtool && rm ./*.deb"
)


def ensure() -> Path:
    """Return the program, which runs on any Linux."""
    progress = Progress()
    with locked(progress) as cache:
        made = root.ensure(cache, progress)
        kept = made.var / "promtool"
        if not kept.is_dir():
            with progress.step("fetching promtool"), made_whole(kept) as part:
                made.run(["sh", "-c", FETCH, "sh", made.inner(part)], 300)
    return kept / "usr/bin/promtool"


def check(page: str) -> tuple[int, str]:
    """Return its exit code and what it says of a page of metrics."""
    done = subprocess.run(
        [ensure(), "check", "metrics"],
        input=page,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout + done.stderr
