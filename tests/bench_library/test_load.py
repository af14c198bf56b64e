# SPDX-License-Identifier: GPL-2.0-only
"""What other work had of the CPU while something was measured."""

import subprocess
import sys
import time

import pytest

from bulkmm.results import host

BURN = [sys.executable, "-c", "import time\nwhile time.process_time() < 0.5: pass"]


def test_a_childs_work_is_no_other_work() -> None:
    before = host.read_load()
    subprocess.run(BURN, check=True)
    used = host.read_load()["own"] - before["own"]
    assert round(used) >= 50  # ticks of 10 ms


def test_what_others_use_is_other_work() -> None:
    """A child that nobody has waited for stands for them."""
    before, began = host.read_load(), time.monotonic()
    with subprocess.Popen(BURN) as child:
        time.sleep(1)  # a signal sent by Popen would wait for it, if it has ended
        load, seconds = host.compare_load(before), time.monotonic() - began
        child.kill()
    assert load["other"] * seconds * (host.describe_host()["cpu"]["cores"] or 1) > 0.2


def test_the_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    stats = iter(["cpu 100 0 100 800 0 0 0 0 0 0", "cpu 300 10 150 1300 20 5 15 100"])
    seconds = iter([0.1, 1.2])
    monkeypatch.setattr(host, "read", lambda _: next(stats))
    monkeypatch.setattr(host.os, "times", lambda: (next(seconds), 0, 0, 0, 0))
    monkeypatch.setattr(host.os, "sysconf", lambda _: 100)
    load = host.compare_load(host.read_load())
    assert (load["steal"], load["other"]) == (round(100 / 900, 4), round(170 / 900, 4))
