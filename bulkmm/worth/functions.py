# SPDX-License-Identifier: GPL-2.0-only
"""The functions that are counted: those of module/paths.def, by this kernel's names."""

from dataclasses import dataclass, replace

from bulkmm.control import kernel as kernels
from bulkmm.control import needs, symbols
from bulkmm.control.kernel import Kernel
from bulkmm.control.root import Root

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
# as 6.1 calls them, or what Clang inlines them into
OLDER = {
    "vmap_small_pages_range_noflush": "__vmap_pages_range_noflush",
    "folio_zero_user": "clear_huge_page",
    "copy_user_large_folio": "copy_user_huge_page",
}
# counted too, whether a path serves them or not
COPY = "copy"
INFORMATION = {"copy_user_large_folio": COPY, "folio_mc_copy": COPY}
SIZED = "vmap"  # the path whose first two arguments are the ends of a range


@dataclass(frozen=True)
class Function:
    """A function that is counted; served: a path of the module hooks it."""

    path: str
    name: str
    served: bool = True


def functions(root: Root, machine: str) -> tuple[list[Function], list[str]]:
    """Return the functions to count that this kernel has, and what it lacks."""
    allocator = kernels.zeroing(Kernel(root)) == "allocator"
    wanted: dict[str, Function] = {}
    for path in needs.read(machine).paths:
        for hook, *_ in path.hooks.values():  # by its newest name
            if hook in NO_WORK or (hook in INSTEAD and not allocator):
                continue
            name = INSTEAD.get(hook, hook)
            wanted.setdefault(name, Function(path.name, name))
    for name, copies in INFORMATION.items():
        wanted.setdefault(name, Function(copies, name, served=False))
    known = symbols.look_up(root, [*wanted, *OLDER.values()])
    found: dict[str, Function] = {}
    missing = []
    for one in wanted.values():
        name = OLDER.get(one.name, one.name) if known[one.name].absent else one.name
        if known[name].absent or known[name].traceable is False:
            missing.append(f"{one.name}: {known[one.name].absent or 'not traceable'}")
        else:
            found[name] = replace(one, name=name)
    return list(found.values()), missing
