# SPDX-License-Identifier: GPL-2.0-only
"""What doctor believes a path needs is what the module's source says."""

import re
import subprocess

import pytest
from commandlib import ROOT

from bulkmm.control import needs
from bulkmm.control.needs import Needs

MODULE = ROOT / "module"
DEFINE = re.compile(r"^#define\s+(\w+)\s+\"(\w+)\"", re.MULTILINE)
SYMBOL = re.compile(r"BMM_HOOK\(\w+, (\"\w+\")\)")
CALLED = re.compile(r"(?:\*symbol = (?=\")|bmm_function_entry\()(\"\w+\"|[A-Z_]+)[,;]")
OPTION = re.compile(r"(IS_ENABLED|BMM_NAME_IF_SET)\(CONFIG_(\w+)\)")
STRUCT = re.compile(r"^struct bmm_path (\w+) = {(.*?)^};", re.DOTALL | re.MULTILINE)
REGISTERED = re.compile(r"bmm_path \*const paths\[\] = {(.*?)};", re.DOTALL)
MACHINES = ("x86_64", "aarch64")
TABLE = {path.name: path for path in needs.read("aarch64").paths}
# the declaration in the module that handlers and calls are compiled with
DECLARED = {
    "memmap_init_zone_device": "bmm_memmap",
    "init_pageblock_migratetype": "bmm_pageblock",
    "set_pageblock_migratetype": "bmm_pageblock",
    "folio_zero_user": "bmm_clear",
    "clear_highpages_kasan_tagged": "bmm_alloc",
    "__add_pages": "bmm_alloc_add",
    "vmap_small_pages_range_noflush": "bmm_vmap_pages",
    "vmap_range_noflush": "bmm_vmap_range",
    "__vmap_pages_range_noflush": "bmm_vmap_huge",
    "get_vm_area_caller": "bmm_vmap_area",
    "find_vm_area": "find_area",
    "__get_vm_area_node": "get_area_node",
    "set_zone_contiguous": "bmm_hotplug",
    "move_pfn_range_to_zone": "bmm_hotplug_grow",
    "remove_pfn_range_from_zone": "bmm_hotplug_shrink",
    "__pageblock_pfn_to_page": "bmm_whole",
}
DECLARATION = re.compile(
    r"^BMM_FUNCTION\((?P<name>\w+), (?P<returns>[^,]+), (?P<takes>[^()]*)\);",
    re.MULTILINE,
)
ARM64 = re.compile(r"^#ifdef CONFIG_ARM64$.*?^#endif$", re.DOTALL | re.MULTILINE)


def definitions() -> dict[str, set[str]]:
    """Return every value that a name is defined to, whatever the kernel."""
    found: dict[str, set[str]] = {}
    for header in MODULE.rglob("*.h"):
        for name, value in DEFINE.findall(header.read_text()):
            found.setdefault(name, set()).add(value)
    return found


def values(word: str, text: str) -> set[str]:
    """Return what a quoted symbol or the name of one stands for."""
    if word.startswith('"'):
        return {word.strip('"')}
    return set(dict(DEFINE.findall(text)).get(word, "").split()) or definitions()[word]


def sources() -> dict[str, str]:
    """Return the source of each path that the module registers: x.c, x_*.c."""
    (registered,) = REGISTERED.findall((MODULE / "main.c").read_text())
    structs = re.findall(r"&(\w+)", registered)
    assert structs
    found = {}
    for file in MODULE.glob("*.c"):
        for name, body in STRUCT.findall(file.read_text()):
            named = re.search(r"\.name = \"(\w+)\"", body)
            if name in structs and named:
                others = sorted(MODULE.glob(f"{file.stem}_*.c"))
                texts = [one.read_text() for one in (file, *others)]
                found[named[1]] = "\n".join(texts)
    assert len(found) == len(structs)
    return found


def test_every_path_is_there() -> None:
    assert set(TABLE) == set(sources())


@pytest.mark.parametrize(
    ("machine", "path"),
    [(machine, path) for machine in MACHINES for path in needs.read(machine).paths],
    ids=lambda word: getattr(word, "name", word),
)
def test_symbols_and_options(machine: str, path: Needs) -> None:
    text = sources()[path.name]
    if machine == "x86_64":
        text = ARM64.sub("", text)
    hooks = [name for word in SYMBOL.findall(text) for name in values(word, text)]
    assert list(path.hooks) == hooks  # the first is the one that it needs
    calls = [values(word, text) for word in CALLED.findall(text)]
    assert [set(group) for group in path.calls] == calls
    options = {(how == "IS_ENABLED", name) for how, name in OPTION.findall(text)}
    wanted = {(False, name) for name in path.without_options}
    assert options == wanted | {(True, name) for name in path.with_options}


def test_architectures_are_those_with_a_trampoline() -> None:
    folders = {"x86": "x86_64", "arm64": "aarch64"}
    built = {
        name for at, name in folders.items() if (MODULE / at / "trampoline.S").exists()
    }
    assert set(needs.read("").architectures) == built == set(MACHINES)


def written(words: str) -> str:
    """Return a type of C as BTF has it."""
    said = " ".join(words.replace("*", " * ").split()).replace("* *", "**")
    return said.replace("unsigned long", "long unsigned int")


def declared() -> dict[str, set[str]]:
    """Return the prototypes of everything that the module declares."""
    found: dict[str, set[str]] = {}
    for file in MODULE.rglob("*.[ch]"):
        for one in DECLARATION.finditer(file.read_text()):
            takes = one["takes"].split(",")
            said = f"{written(one['returns'])} ({', '.join(map(written, takes))})"
            found.setdefault(one["name"], set()).add(said)
    return found


def test_prototypes_are_what_the_module_is_compiled_for() -> None:
    wanted = {name for m in MACHINES for p in needs.read(m).paths for name in p.symbols}
    prototypes = needs.read("").prototypes
    assert set(prototypes) == set(DECLARED) == wanted
    found = declared()
    for name, prototype in prototypes.items():
        assert set(prototype.split(" | ")) <= found[DECLARED[name]], name


@pytest.mark.parametrize("machine", MACHINES)
def test_the_kernels_are_those_that_it_builds_for(machine: str) -> None:
    config = {"x86_64": "CONFIG_X86_64=y", "aarch64": "CONFIG_ARM64=y"}[machine]
    show = "all:\n\t@echo $(bmm-oldest) $(bmm-newest)\n"
    rules = f"include {MODULE}/compat/supported.mk\n{show}"
    said = subprocess.run(
        ["make", "-sf", "-", "CONFIG_MODULES=y", config, "VERSION=7", "PATCHLEVEL=0"],
        input=rules,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    numbers = [int(number) for number in said.split()]
    kernels = needs.read(machine).kernels
    assert kernels == tuple(f"{n // 1000}.{n % 1000}" for n in numbers)


def test_the_docs_name_the_same_kernels() -> None:
    oldest, newest = needs.read("x86_64").kernels
    older_arm64 = needs.read("aarch64").kernels[0]
    assert needs.read("aarch64").kernels[1] == newest
    install = (ROOT / "docs/install.md").read_text()
    arm64 = f"(arm64: {older_arm64} to {newest})"
    assert f"kernels other than {oldest} to {newest} {arm64}," in install
    limits = " ".join((ROOT / "docs/limits.md").read_text().split())
    assert f"before {oldest} (arm64: {older_arm64}) or after {newest}." in limits
