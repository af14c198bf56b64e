# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm on|off --persist``: what the module is loaded with."""

import re

from commandlib import ROOT, Command
from fakekernel import Fake

from bulkmm.control import requirements, switch
from bulkmm.shell.errors import Exit

FILE = switch.FILE
MODE = "/sys/kernel/bulkmm/clear/mode"


def test_now_and_at_every_load(loaded: Fake, bulkmm: Command) -> None:
    result = bulkmm("on", "clear", "streaming", "--persist", "--json")
    assert result.code == Exit.OK
    assert loaded.read(MODE) == "streaming"
    assert loaded.read(FILE).splitlines()[-1] == "options bulkmm clear=streaming"
    now, at_load = result.json["changes"]
    assert (now["key"], at_load["key"]) == ("clear.mode", "clear at load")
    assert (at_load["file"], at_load["before"]) == (FILE, switch.DEFAULT)
    loaded.write(MODE, "off auto cached [streaming]", 0o644)
    assert bulkmm("on", "clear", "--persist").code == Exit.OK  # the first but off
    assert loaded.read(FILE).splitlines()[-1] == "options bulkmm clear=auto"


def test_what_else_the_file_says_stays(kernel: Fake, bulkmm: Command) -> None:
    before = (
        "# ours \\\n b\noptions bulkmm clear=off memmap_min_pages=9\n"
        "options bulkmm vmap=on \\\n  clear=auto\noptions other clear=x\nblacklist y"
    )
    kernel.write(FILE, before)
    assert "(was auto)" in bulkmm("off", "clear", "--persist").out
    assert kernel.read(FILE) == f"{before}\noptions bulkmm clear=off"
    bulkmm("on", "memmap", "--persist")
    assert "(was off)" in bulkmm("on", "clear", "--persist").out
    options = "options bulkmm memmap=on\noptions bulkmm clear=auto"
    assert kernel.read(FILE) == f"{before}\n{options}"


def test_a_line_that_is_continued_by_nothing(kernel: Fake, bulkmm: Command) -> None:
    kernel.write(FILE, "options bulkmm vmap=on \\\n")
    bulkmm("off", "clear", "--persist")
    options = [line.split() for line in kernel.read(FILE).splitlines()]
    assert options == [
        ["options", "bulkmm", f"{one}"] for one in ("vmap=on", "clear=off")
    ]


def test_a_comment_of_another_encoding_stays(loaded: Fake, bulkmm: Command) -> None:
    loaded.write(FILE, "", 0o644)
    file = loaded.root / FILE[1:]
    file.write_bytes(b"# g\xfcltig\n")
    assert bulkmm("on", "clear", "--persist").code == Exit.OK
    assert file.read_bytes() == b"# g\xfcltig\noptions bulkmm clear=auto\n"


def test_without_a_loaded_module(kernel: Fake, bulkmm: Command) -> None:
    assert bulkmm("on", "vmap", "block").code == Exit.ENVIRONMENT
    assert bulkmm("on", "vmap", "block", "--persist").code == Exit.OK
    assert kernel.read(FILE).splitlines()[-1] == "options bulkmm vmap=block"
    assert bulkmm("off", "--persist").code == Exit.OK
    options = kernel.read(FILE).splitlines()[1:]
    paths = requirements.read_table("x86_64").paths
    assert options == [f"options bulkmm {one.name}=off" for one in paths]


def test_a_dry_run_writes_nothing(loaded: Fake, bulkmm: Command) -> None:
    result = bulkmm("on", "clear", "--persist", "--dry-run")
    assert f"would write auto to {FILE}" in result.out
    assert not (loaded.root / FILE[1:]).exists()
    assert loaded.read(MODE).startswith("[off]")


def test_a_path_that_cannot_be_switched_is_not_kept(
    loaded: Fake, bulkmm: Command
) -> None:
    loaded.remove(MODE)
    (loaded.root / MODE[1:]).mkdir()
    assert bulkmm("on", "clear", "--persist").code != Exit.OK
    assert not (loaded.root / FILE[1:]).exists()


def test_modes_are_those_of_the_parameters() -> None:
    page = (ROOT / "docs" / "abi.md").read_text()
    row = r"^\| `(\w+)` \| (`o(?:ff|n)`[^|]*) \|.*\| mode at load \|$"
    rows = re.findall(row, page, re.MULTILINE)
    documented = {name: set(re.findall(r"`(\w+)`", modes)) for name, modes in rows}
    paths = requirements.read_table("x86_64").paths
    assert documented == {one.name: set(one.modes) for one in paths}
    assert {one.modes[0] for one in paths} == {"off"}
