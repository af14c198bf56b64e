# SPDX-License-Identifier: GPL-2.0-only
"""The machine's description: complete, and nothing personal in it."""

import json
import os
import platform
from pathlib import Path

from bulkmm import machine


def test_describes_what_a_figure_needs() -> None:
    found = machine.describe()
    assert found["cpu"]["model"]
    assert found["cpu"]["cores"] == os.cpu_count()
    assert found["kernel"] == platform.release()
    assert found["memory_bytes"] > 1 << 28
    assert found["bulkmm"] == "0.1.0"


def test_names_no_host_and_no_path() -> None:
    said = json.dumps(machine.describe())
    assert str(Path(__file__).parents[2]) not in said
    assert str(Path.home()) not in said
    node = platform.node()
    values = json.loads(said).values()
    assert node not in [v for v in values if isinstance(v, str)]


def test_memory_fields() -> None:
    total, available = (machine.memory_kib(f) for f in ("MemTotal", "MemAvailable"))
    assert total is not None
    assert available is not None
    assert 0 < available <= total
    assert machine.memory_kib("NoSuchField") is None
