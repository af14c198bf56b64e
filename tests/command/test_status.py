# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm status``: all that sysfs has, of paths that it names itself."""

import json
import shutil
from pathlib import Path

import pytest
from commandlib import Command, Result, list_imports
from fakekernel import COUNTERS, PATHS, RELEASE, ZEROING, Fake

from bulkmm.control.json_output import make_schema
from bulkmm.shell.errors import Exit

HOME = "/sys/kernel/bulkmm"


@pytest.mark.usefixtures("loaded")
def test_json_has_every_path(bulkmm: Command) -> None:
    """Its settings and backends are those of tune and of the metrics."""
    result = bulkmm("status", "--json")
    assert result.code == Exit.OK
    paths = {path["name"]: path for path in result.json["paths"]}
    assert set(paths) == set(PATHS)
    clear = paths["clear"]
    assert clear["mode"] == "off"
    assert clear["modes"] == ["off", "auto", "cached", "streaming"]
    assert clear["counters"] == COUNTERS | {"streamed": 4096}
    assert clear["fallbacks"] == {"off": 0, "small": 7}
    assert clear["backends"]["backend_cached"]["serving"] == "rep-b"
    assert clear["backends"]["backend_streaming"]["gb_per_s"] == {}


@pytest.mark.usefixtures("loaded")
def test_a_path_that_nobody_knew_is_shown_whole(bulkmm: Command) -> None:
    (later,) = bulkmm("status", "later", "--json").json["paths"]
    assert later["counters"]["runs"] == 5
    assert later["counters"]["leaves_pte"] == 9
    assert later["fallbacks"] == {"odd": 1}
    assert later["backends"] == later["choices"] == later["settings"] == {}
    assert [hook["attached"] for hook in later["hooks"]] == [True, False]
    output = bulkmm("status", "later").out
    assert "1 of 2 attached" in output
    assert "second_function  somebody has it" in output
    assert "off pte [block]" in output


@pytest.mark.usefixtures("loaded")
def test_text_is_a_table(bulkmm: Command) -> None:
    result = bulkmm("status")
    assert result.code == Exit.OK
    row = next(line for line in result.out.splitlines() if line.startswith("memmap"))
    assert row.split("  ")[0] == "memmap"
    for word in ("on", "attached", "8 MiB", "500 µs", "off 2, small 4"):
        assert word in row
    assert "init_on_alloc=1 on 6.13 or later" in result.words


def test_without_the_module(bulkmm: Command) -> None:
    result = bulkmm("status")
    assert result.code == Exit.VERDICT
    assert "not loaded: modprobe bulkmm" in result.words
    assert "bulkmm doctor" in result.words


@pytest.mark.parametrize(
    "words", ["status", "status --json", "status --format prometheus", "on clear"]
)
def test_where_nothing_can_be_read(kernel: Fake, bulkmm: Command, words: str) -> None:
    """It is not known to be absent, and loading it is no remedy."""
    shutil.rmtree(kernel.root / "sys")
    result = bulkmm(*words.split())
    assert result.code == Exit.ENVIRONMENT
    assert "whether the module is loaded is unknown" in result.out + result.err
    assert "modprobe" not in result.out + result.err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("status", Exit.VERDICT),
        ("on clear", Exit.ENVIRONMENT),
        ("off", Exit.ENVIRONMENT),
        ("tune", Exit.ENVIRONMENT),
        ("watch", Exit.ENVIRONMENT),
    ],
)
def test_on_a_kernel_without_modules(
    kernel: Fake, bulkmm: Command, words: str, code: int
) -> None:
    """Nothing tells to load one: doctor says why that would fail."""
    file = "/proc/sys/kernel/modules_disabled"
    for change in (lambda: kernel.write(file, "1"), lambda: kernel.remove(file)):
        change()
        result = bulkmm(*words.split())
        assert result.code == code
        text = result.out + result.err
        assert "this kernel loads none: bulkmm doctor" in text
        assert "modprobe" not in text


def test_the_schema_goes_where_it_is_wanted(bulkmm: Command, tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    assert bulkmm("status", "--schema", "-o", str(file)) == Result(Exit.OK, "", "")
    assert json.loads(file.read_text()) == make_schema()


@pytest.mark.parametrize(
    ("release", "default", "cmdline", "case"),
    [
        (RELEASE, "y", "", "allocator"),
        (RELEASE, "y", "init_on_alloc=0", "once"),
        (RELEASE, "n", "", "once"),
        (RELEASE, "n", "init_on_alloc=0 init_on_alloc=on", "allocator"),
        ("6.12.107+deb13-cloud-amd64", "y", "", "twice"),
        ("6.12.107+deb13-cloud-amd64", "n", "init_on_alloc=1", "twice"),
        ("6.13.0", "y", "", "allocator"),
        (RELEASE, None, "", "unknown"),
        (RELEASE, None, "init_on_alloc=Yes", "allocator"),
    ],
)
def test_who_clears_huge_pages(
    kernel: Fake,
    bulkmm: Command,
    release: str,
    default: str | None,
    cmdline: str,
    *,
    case: str,
) -> None:
    kernel.remove(f"/boot/config-{RELEASE}")
    kernel.write("/proc/sys/kernel/osrelease", release)
    kernel.write("/proc/cmdline", f"quiet {cmdline}")
    if default is not None:
        yes = default == "y"
        option = f"CONFIG_{ZEROING}=y" if yes else f"# CONFIG_{ZEROING} is not set"
        kernel.write(f"/boot/config-{release}", f"CONFIG_MMU=y\n{option}")
    kernel_status = bulkmm("status", "--json").json["kernel"]
    assert kernel_status["zeroing"] == case
    assert kernel_status["says"] in bulkmm("status").words


def test_it_goes_away_while_it_is_read(loaded: Fake, bulkmm: Command) -> None:
    loaded.remove(f"{HOME}/clear/mode")
    loaded.remove(f"{HOME}/memmap/stats")
    loaded.remove(f"{HOME}/memmap/hook")
    result = bulkmm("status", "--json")
    assert [path["name"] for path in result.json["paths"]] == ["later", "memmap"]
    assert bulkmm("status").code == Exit.OK


@pytest.mark.parametrize("command", ["status", "doctor"])
def test_no_library_is_imported_that_takes_longer_than_the_work(
    loaded: Fake, command: str
) -> None:
    """Time is the machine's; what is imported is ours."""
    heavy = ("numpy", "scipy", "rich", "jinja2", "subprocess", "lab", "bench")
    line = f"{command} --root {loaded.root}"
    assert list_imports([line], *heavy, "bulkmm.results.model") == []
