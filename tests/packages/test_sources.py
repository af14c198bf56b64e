# SPDX-License-Identifier: GPL-2.0-only
"""What the packages are made of says the same thing everywhere."""

import re
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from bulkmm.control import needs, persist
from bulkmm.lab import scenario
from bulkmm.lab.families import packages
from bulkmm.lab.machine import debs
from bulkmm.lab.machine.vm import Outcome

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "install.md").read_text()
GUEST = (ROOT / "lab" / "guest" / "packages.sh").read_text()


def version_in(name: str) -> str:
    """Return the first version that a file names."""
    found = re.search(r"\d+\.\d+\.\d+", (ROOT / name).read_text())
    assert found
    return found[0]


@pytest.mark.parametrize("name", debs.VERSIONS)
def test_one_version(name: str) -> None:
    assert version_in(name) == debs.version() == metadata.version("bulkmm")


def test_symbols_are_those_of_the_library() -> None:
    library = (ROOT / "lib" / "libbulkmm.map").read_text()
    listed = (ROOT / "debian" / "libbulkmm0.symbols").read_text()
    exported = re.findall(r"^\t(bmm_\w+);", library, re.MULTILINE)
    assert re.findall(r"^ (bmm_\w+)@", listed, re.MULTILINE) == sorted(exported)


def test_the_example_sets_parameters_that_there_are() -> None:
    text = (ROOT / "debian/examples/modprobe.d-bulkmm.conf").read_text()
    paths = {one.name for one in needs.read("x86_64").paths}
    (options,) = re.findall(r"^options bulkmm (.*)$", text, re.MULTILINE)
    for word in options.split():
        assert word.partition("=")[0] in paths


def test_what_persist_writes_hides_nothing_that_is_shipped() -> None:
    (shipped,) = (ROOT / "module").glob("*.conf")
    assert (
        f"module/{shipped.name} usr/lib/modprobe.d\n"
        in (ROOT / "debian/bulkmm-dkms.install").read_text()
    )
    assert shipped.name != Path(persist.FILE).name


def test_the_page_purges_what_the_guest_does() -> None:
    (purged,) = re.findall(r'^PURGED="(.*)"$', GUEST, re.MULTILINE)
    assert f"\napt purge {purged}\n" in PAGE


def work(**chosen: Any) -> Any:
    return scenario.find("packages").make(**chosen)


def outcome(*names: str, ok: str = "yes") -> Outcome:
    """Return what a guest would report that came as far as these steps."""
    steps = [{"event": "step", "name": name, "seconds": 1} for name in names]
    check = {"event": "check", "name": "attached", "ok": ok, "detail": "grep"}
    return Outcome(lambda _event: None, [*steps, check])


def test_verdicts() -> None:
    assert all(check.ok for check in work().checks(outcome(*packages.STEPS)))
    early = work().checks(outcome(*packages.STEPS[:-1]))
    assert [check.ok for check in early] == [False, True]
    failed = work().checks(outcome(*packages.STEPS, ok="no"))
    assert [check.ok for check in failed] == [True, False]


def test_the_guest_makes_every_step() -> None:
    made = re.findall(r"^\t+step (\w+)$", GUEST, re.MULTILINE)
    assert tuple(made) == packages.STEPS


def test_without_upgrade() -> None:
    some = work(no_upgrade=True)
    assert packages.next_version() not in some.job([])
    assert packages.next_version() in work().job([])
    without = [name for name in packages.STEPS if name != "upgrade"]
    assert all(check.ok for check in some.checks(outcome(*without)))
    assert not all(check.ok for check in work().checks(outcome(*without)))
