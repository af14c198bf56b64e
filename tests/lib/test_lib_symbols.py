# SPDX-License-Identifier: GPL-2.0-only
"""What the installed library exports, and how it may be loaded."""

import re

from corelib import ROOT
from installed import Installed, header_functions, run_checked

VERSION = "BULKMM_0.1"
# a node for each release
LATER = dict.fromkeys(
    ["bmm_collapse", "bmm_populate_ranges", "bmm_stage"], "BULKMM_0.1.1"
)


def test_exports_are_the_functions_of_the_header(installed: Installed) -> None:
    library = installed.library("libbulkmm.so.0")
    table = run_checked("nm", "-D", "--defined-only", "--with-symbol-versions", library)
    symbols = [line.split()[1:] for line in table.splitlines()]
    assert ["A", VERSION] in symbols
    exported = sorted(name for kind, name in symbols if kind != "A")
    assert exported == [
        f"{name}@@{LATER.get(name, VERSION)}" for name in header_functions()
    ]
    recorded = (ROOT / "debian/libbulkmm0.symbols").read_text()
    assert sorted(re.findall(r"^ (bmm_\w+@\S+)", recorded, re.MULTILINE)) == [
        name.replace("@@", "@") for name in exported
    ]


def test_the_archive_is_complete_and_one_object(installed: Installed) -> None:
    archive = installed.library("libbulkmm.a")
    assert archive.read_bytes().startswith(b"!<arch>\n")  # not a thin one
    assert len(run_checked("ar", "t", archive).split()) == 1
    missing = run_checked("nm", "--undefined-only", archive).split()
    assert not [name for name in missing if name.startswith("bmm_")]


def test_the_archive_takes_no_name_of_a_program(installed: Installed) -> None:
    """Only the functions of the header are global: a program may have any other."""
    archive = installed.library("libbulkmm.a")
    lines = run_checked("nm", "--defined-only", "-g", archive).splitlines()
    names = [line.split()[2] for line in lines if " " in line]
    assert sorted(names) == header_functions()


def test_a_static_link_is_told_of_threads(installed: Installed) -> None:
    """Not part of libc before glibc 2.34."""
    pc = next(installed.root.rglob("bulkmm.pc")).read_text()
    assert re.search(r"^Libs.private:.* -pthread\b", pc, re.MULTILINE)


def test_it_loads_without_writable_code_or_executable_stack(
    installed: Installed,
) -> None:
    library = installed.library("libbulkmm.so.0")
    dynamic = run_checked("readelf", "-dW", library)
    assert "Library soname: [libbulkmm.so.0]" in dynamic
    assert "TEXTREL" not in dynamic
    assert re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic) == ["libc.so.6"]
    (stack,) = re.findall(r"GNU_STACK\s+(.*)", run_checked("readelf", "-lW", library))
    assert stack.split()[5] == "RW"
