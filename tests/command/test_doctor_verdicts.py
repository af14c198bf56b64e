# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm doctor``: every reason for which a path would not attach."""

import gzip
import struct
from collections.abc import Callable

import pytest
from commandlib import Command
from doctorlib import paths_of, states_of
from fakekernel import CONFIG, OLD, RELEASE, RELEASED, Fake, load_module

from bulkmm.shell.errors import Exit

KALLSYMS = "/proc/kallsyms"
TRACING = "/sys/kernel/tracing"
ENABLED = f"{TRACING}/enabled_functions"
FILTERS = f"{TRACING}/available_filter_functions"
FOLIO = "folio_zero_user"
Edit = Callable[[Fake], None]
INIT, SET = "init_pageblock_migratetype", "set_pageblock_migratetype"
AREA = "get_vm_area_caller"


def test_all_is_attached(kernel: Fake, bulkmm: Command) -> None:
    attach_paths(kernel)
    line = f"{FOLIO} (1)        D  \tdirect-->bmm_clear_trampoline+0x0/0x30 [bulkmm]"
    kernel.write(ENABLED, line)
    result = bulkmm("doctor", "--json")
    assert result.code == Exit.OK
    verdicts = paths_of(result.json)
    assert verdicts["memmap"] == verdicts["clear"] == ("attached", "")
    assert states_of(result.json)["module"] == "ok"


def edit_file(file: str, old: str, new: str) -> Edit:
    """Change a part of a file that must be there, or all of it."""

    def edited(fake: Fake) -> None:
        text = fake.read(file)
        assert old in text
        fake.write(file, text.replace(old or text, new))

    return edited


def drop_symbol(name: str) -> Edit:
    return edit_file(KALLSYMS, f"0000000000000000 t {name}", "0 t other")


def add_line(line: str) -> Edit:
    return edit_file(KALLSYMS, "0 D jiffies", line)


def make_tried(fake: Fake) -> None:
    load_module(fake)
    fake.write("/sys/kernel/bulkmm/clear/hook", f"-22 {FOLIO}: not allowed")


def remove_file(name: str) -> Edit:
    return lambda fake: fake.remove(name)


def make_older(fake: Fake) -> None:
    fake.write(RELEASED, OLD)
    fake.write(f"/boot/config-{OLD}", fake.read(CONFIG))


def attach_paths(fake: Fake) -> None:
    load_module(fake)
    fake.write("/sys/kernel/bulkmm/clear/hook", f"0 {FOLIO}: attached")


def pack_configuration(size: int | None) -> Edit:
    """Have the configuration in the kernel itself, whole or cut."""

    def edit(fake: Fake) -> None:
        config = gzip.compress(fake.read(CONFIG).encode())
        fake.remove(CONFIG)
        (fake.root / "proc/config.gz").write_bytes(config[:size])

    return edit


def empty_file(file: str) -> Edit:
    return lambda fake: fake.write(file, "")


LIVE = edit_file(ENABLED, "", f"{FOLIO} (1) R I    \ttramp: x")
BPF = f"{FOLIO} (1)    D  \n\tdirect-->bpf_trampoline_1+0x0/0x9"
UNTRACED = edit_file(FILTERS, f"{FOLIO}\n", "")
KASAN = edit_file(CONFIG, "CONFIG_KPROBES=y", "CONFIG_KPROBES=y\nCONFIG_KASAN=y")
FLAT = edit_file(CONFIG, "CONFIG_SPARSEMEM_VMEMMAP=y\n", "")
CLONE = add_line(f"0 t {FOLIO}.constprop.0")
HIGH = drop_symbol("clear_highpages_kasan_tagged")
NO_ZEROING = edit_file("/proc/cmdline", "", "init_on_alloc=0")
NO, YES, UNKNOWN = "would not attach", "would attach", "unknown"
CODES = {NO: Exit.VERDICT, UNKNOWN: Exit.ENVIRONMENT}


@pytest.mark.parametrize(
    ("edits", "path", "verdict", "why"),
    [
        ([drop_symbol("memmap_init_zone_device")], "memmap", NO, "renamed, or inlined"),
        (
            [drop_symbol(FOLIO), CLONE],
            "clear",
            NO,
            f"changed it to {FOLIO}.constprop.0",
        ),
        ([add_line(f"0 t {FOLIO}")], "clear", NO, "has 2 functions of"),
        ([UNTRACED], "clear", NO, "the kernel does not allow tracing it"),
        ([LIVE], "clear", NO, "a live patch is attached to it"),
        ([edit_file(ENABLED, "", BPF)], "clear", NO, "bpf_trampoline_1+0x0/0x9"),
        ([KASAN], "clear", NO, "CONFIG_KASAN is set"),
        ([FLAT], "memmap", NO, "CONFIG_SPARSEMEM_VMEMMAP is not set"),
        ([make_tried], "clear", NO, f"the module reports for {FOLIO}: not allowed"),
        # one of two names is enough
        ([drop_symbol(SET)], "memmap", YES, ""),
        (
            [drop_symbol(SET), drop_symbol(INIT)],
            "memmap",
            NO,
            f"{INIT} or {SET}: the kernel has no",
        ),
        # not needed by the path
        (
            [drop_symbol(AREA)],
            "vmap",
            YES,
            f"without {AREA}: the kernel has no such function",
        ),
        # nor where the kernel copies struct pages itself
        (
            [add_line("0 T __memmap_init_zone_device")],
            "memmap",
            "not needed",
            "the kernel does its work itself: it has __memmap_init_zone_device()",
        ),
        # the hook of another path
        ([LIVE], "prezero", NO, "a live patch is attached to it"),
        # not needed where the allocator does not clear; inlined where not it alone does
        ([HIGH], "alloc", NO, "clear_highpages_kasan_tagged"),
        ([HIGH, NO_ZEROING], "alloc", "not needed", "init_on_alloc is off: "),
        ([HIGH, make_older], "alloc", "cannot serve", "the first stays as it is"),
        ([remove_file(FILTERS)], "memmap", UNKNOWN, "only root can list"),
        ([remove_file(KALLSYMS)], "memmap", UNKNOWN, "kallsyms cannot be read"),
        ([remove_file(CONFIG)], "memmap", UNKNOWN, "configuration cannot be read"),
        ([pack_configuration(None)], "memmap", YES, ""),
        ([pack_configuration(20)], "memmap", UNKNOWN, "configuration cannot be read"),
        # as a container has it, whose runtime masks it
        ([pack_configuration(0)], "memmap", UNKNOWN, "configuration cannot be read"),
        ([empty_file(CONFIG)], "memmap", UNKNOWN, "configuration cannot be read"),
        ([empty_file(KALLSYMS)], "memmap", UNKNOWN, "kallsyms cannot be read"),
        ([empty_file(FILTERS)], "memmap", UNKNOWN, "only root can list"),
    ],
)
def test_the_verdict_on_a_path(
    kernel: Fake,
    bulkmm: Command,
    edits: list[Edit],
    path: str,
    *,
    verdict: str,
    why: str,
) -> None:
    for edit in edits:
        edit(kernel)
    result = bulkmm("doctor", "--json")
    assert result.code == CODES.get(verdict, Exit.OK)
    actual, reasons = paths_of(result.json)[path]
    assert actual == verdict, reasons
    assert why in reasons


@pytest.mark.parametrize("name", ["clear_pages_nt", "__clear_pages_nt"])
def test_a_kernel_that_clears_past_the_caches_itself(
    kernel: Fake, bulkmm: Command, name: str
) -> None:
    add_line(f"0 T {name}")(kernel)
    result = bulkmm("doctor", "--json")
    assert result.code == Exit.VERDICT
    verdicts = paths_of(result.json)
    for path in ("clear", "alloc"):
        why = f"the kernel does its work itself: it has {name}()"
        assert verdicts[path] == ("not needed", why)
    why = f"clear, whose hook it needs, stays off: the kernel has {name}()"
    assert verdicts["prezero"] == (NO, why)


def test_a_reason_of_all_paths_is_given_once(kernel: Fake, bulkmm: Command) -> None:
    edit_file(CONFIG, "CONFIG_KPROBES=y\n", "CONFIG_KASAN=y\n")(kernel)
    result = bulkmm("doctor")
    assert result.code == Exit.VERDICT
    (line,) = (line for line in result.out.splitlines() if "KPROBES: not" in line)
    assert line == "  CONFIG_KPROBES: not set"
    assert "\nmemmap: would not attach\n" in result.out
    assert result.out.count("CONFIG_KASAN is set") == 1
    assert "  memmap, clear, prezero, alloc, copy: CONFIG_KASAN is set\n" in result.out


@pytest.mark.parametrize(
    ("edits", "summary"),
    [
        ([], f"all attach on {RELEASE}: "),
        ([HIGH], f"not all attach on {RELEASE}: alloc would not attach; "),
        ([HIGH, NO_ZEROING], f"all attach on {RELEASE}: "),
        ([HIGH, make_older], f"all but alloc attach on {OLD}: "),
        ([remove_file(FILTERS)], f"what attaches on {RELEASE} is unknown: "),
        ([attach_paths, remove_file(FILTERS)], "unknown whether all attach on "),
        ([empty_file(RELEASED), HIGH], "not all attach on this kernel: alloc would n"),
        ([empty_file(RELEASED)], "what attaches on this kernel is unknown: "),
    ],
)
def test_the_verdict_on_the_kernel(
    kernel: Fake, bulkmm: Command, edits: list[Edit], summary: str
) -> None:
    for edit in edits:
        edit(kernel)
    first, lines = (
        bulkmm("doctor", "--json").json["verdict"],
        bulkmm("doctor").out.splitlines(),
    )
    assert first.startswith(lines[0])
    assert first.startswith(summary), first
    assert first.endswith("; alloc cannot serve") is (make_older in edits), first
    alloc_lines = [line for line in lines if line.startswith("alloc: cannot serve: ")]
    assert bool(alloc_lines) is (make_older in edits)


def test_who_has_a_function_is_told(kernel: Fake, bulkmm: Command) -> None:
    kernel.write(ENABLED, f"{FOLIO} (2) R     \ttramp: x (y)")
    assert bulkmm("doctor").code == Exit.OK  # a callback is no obstacle
    LIVE(kernel)
    document = bulkmm("doctor", "--json").json
    assert document["verdict"].startswith(
        f"not all attach on {RELEASE}: clear, prezero would not"
    )
    assert document["blockers"] == [f"{FOLIO}: a live patch is attached to it"]
    (remedy,) = document["remedies"]
    assert FOLIO in remedy


def write_btf(kernel: Fake, types: bytes, *names: str) -> None:
    """Give the kernel types after int, which is type 1: their names begin at 5."""
    types = struct.pack("<IIII", 1, 1 << 24, 4, 0x1000020) + types
    strings = "\0".join(("", "int", *names, "")).encode()
    sizes = (len(types), len(types), len(strings))
    head = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, *sizes)
    file = kernel.root / "sys/kernel/btf/vmlinux"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(head + types + strings)


@pytest.mark.parametrize(
    ("path", "member"),
    [
        ("memmap", "mem_section.compound_page_order"),
        ("hotplug", "zone.pages_with_online_memmap"),
    ],
)
def test_what_linux_7_4_does_itself(
    kernel: Fake, bulkmm: Command, path: str, member: str
) -> None:
    """Its functions are called as before: only the struct tells."""
    names = member.split(".")
    for has in (False, True):
        name = 5 + (len(names[0]) + 1 if has else 0)  # else a member named as its type
        types = struct.pack("<III III", 5, 4 << 24 | 1, 4, name, 1, 0)
        write_btf(kernel, types, *names)
        verdict, why = paths_of(bulkmm("doctor", "--json").json)[path]
        assert (verdict == "not needed") is has
        assert (f"the kernel does its work itself: it has {member}" in why) is has


@pytest.mark.parametrize("cut", [*range(1, 34, 3)])
def test_types_that_are_cut_short_are_as_good_as_none(
    kernel: Fake, bulkmm: Command, cut: int
) -> None:
    without = bulkmm("doctor", "--json").json["paths"]
    write_btf(kernel, struct.pack("<III", 5, 12 << 24, 2))
    file = kernel.root / "sys/kernel/btf/vmlinux"
    file.write_bytes(file.read_bytes()[:-cut])
    paths = bulkmm("doctor", "--json").json["paths"]
    if cut > len("\0int\0"):
        assert paths == without


def test_another_prototype_is_refused_as_the_module_does(
    kernel: Fake, bulkmm: Command
) -> None:
    types = struct.pack("<III II", 0, 13 << 24 | 1, 0, 0, 1)  # void (int)
    types += struct.pack("<III", 5, 12 << 24, 2)
    write_btf(kernel, types, "set_zone_contiguous")
    result = bulkmm("doctor", "--json")
    assert result.code == Exit.VERDICT
    verdict, why = paths_of(result.json)["hotplug"]
    assert verdict == "would not attach"
    assert "set_zone_contiguous: void (int)" in why
    assert (
        "folio_zero_user or clear_huge_page: none" in paths_of(result.json)["clear"][1]
    )
