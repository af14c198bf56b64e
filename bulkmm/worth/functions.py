# SPDX-License-Identifier: GPL-2.0-only
"""The functions that are counted: those of module/paths.def, by this kernel's names."""

from dataclasses import dataclass, replace

from bulkmm.control import requirements, symbols
from bulkmm.control.kernel import Kernel
from bulkmm.control.system_files import SystemFiles

# What a path hooks only to learn of it, or what calls another hooked function.
NO_WORK = {
    "__add_pages",
    "__vmap_pages_range_noflush",
    "enqueue_hugetlb_folio",
    "get_vm_area_caller",
    "move_pfn_range_to_zone",
    "remove_hugetlb_folio",
    "remove_pfn_range_from_zone",
}
# The allocator clears every page by this function. A probe there would slow every
# allocation, so the fault that asks for a huge page is timed instead.
INSTEAD = {"clear_highpages_kasan_tagged": "do_huge_pmd_anonymous_page"}
# counted too, though no path serves them
INFORMATION = {"folio_mc_copy": "copy"}
SIZED = "vmap"  # the path whose first two arguments are the ends of a range


@dataclass(frozen=True)
class Function:
    """A function that is counted, and whether a path of the module hooks it."""

    path: str
    name: str
    is_hooked: bool = True


def find_functions(root: SystemFiles, machine: str) -> tuple[list[Function], list[str]]:
    """Return the functions to count that this kernel has, and what it lacks."""
    allocator = Kernel(root).zeroing == "allocator"
    wanted: list[tuple[Function, list[str]]] = []  # and all its names, newest first
    for path in requirements.read_table(machine).paths:
        for hook, *older in path.hooks.values():
            if hook in NO_WORK or (hook in INSTEAD and not allocator):
                continue
            name = INSTEAD.get(hook, hook)
            wanted.append((Function(path.name, name), [name, *older]))
    for name, path_name in INFORMATION.items():
        wanted.append((Function(path_name, name, is_hooked=False), [name]))
    entries = symbols.look_up(root, [name for _, names in wanted for name in names])
    by_name: dict[str, Function] = {}
    missing = []
    for function, names in wanted:
        name = next((n for n in names if not entries[n].absent), function.name)
        if entries[name].absent or entries[name].traceable is False:
            missing.append(f"{name}: {entries[name].absent or 'not traceable'}")
        else:
            by_name.setdefault(name, replace(function, name=name))
    return list(by_name.values()), missing
