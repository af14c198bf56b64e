# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's own modules in a guest: those that a name needs, in load order."""

import re
from pathlib import Path, PurePath

from bulkmm.shell.errors import BulkmmError
from lab.machine.kernels import Kernel

SOFT = re.compile(r"softdep (?P<module>\S+) .*?pre: (?P<names>.*?)(?: post:|$)")
EARLY = ("virtio_pci", "virtio_console")  # for the ports to the host


def list_modules(kernel: Kernel, names: tuple[str, ...]) -> list[str]:
    """Return the modules to load for these, in load order, as paths.

    Built-in modules and those that the architecture lacks are skipped; unknown names
    are an error.
    """
    needs: dict[str, list[str]] = {}
    for line in (kernel.modules / "modules.dep").read_text().splitlines():
        path, _, needed = line.partition(":")
        # the deepest dependency is listed last but must be loaded first
        needs[_name(path)] = [*reversed(needed.split()), path]
    built_in = (kernel.modules / "modules.builtin").read_text().split()
    skippable = {*map(_name, built_in), *kernel.arch.lacks}
    before = _read_soft(kernel)
    order: dict[str, None] = {}
    visited: set[str] = set()

    def add(name: str) -> None:
        for path in needs.get(name, ()):
            if path not in visited:
                visited.add(path)
                for wanted in before.get(_name(path), ()):
                    add(wanted)
                order[path] = None

    for name in names:
        if name not in needs and name not in skippable:
            raise BulkmmError(f"kernel {kernel.release} has no module {name}")
        add(name)
    return list(order)


def _read_soft(kernel: Kernel) -> dict[str, list[str]]:
    """Return the modules that each is to find loaded, besides those it links to.

    ext4 asks for "crypto-crc32c" on kernels where that is a module. Of several that
    go by a name the last is taken: depmod names those that need a CPU's feature first.
    """
    aliases = {}
    for line in (kernel.modules / "modules.alias").read_text().splitlines():
        _, alias, name = line.rsplit(maxsplit=2)
        aliases[alias.replace("-", "_")] = name
    soft: dict[str, list[str]] = {}
    for line in (kernel.modules / "modules.softdep").read_text().splitlines():
        if match := SOFT.match(line):
            words = match["names"].replace("-", "_").split()
            names = [aliases.get(name, name) for name in words]
            soft.setdefault(match["module"], []).extend(names)
    return soft


def list_names(kernel: Kernel, names: tuple[str, ...]) -> list[str]:
    """Return the names of those that a guest's job loads, in load order."""
    early = list_modules(kernel, EARLY)
    return [_name(path) for path in list_modules(kernel, names) if path not in early]


def add_modules(kernel: Kernel, names: tuple[str, ...], to: Path) -> None:
    """Unpack them under their plain names; list those that are loaded early."""
    for path in list_modules(kernel, (*EARLY, *names)):
        inner = kernel.root.inner(kernel.modules / path)
        out = kernel.root.inner(to / f"modules/{_name(path)}.ko")
        tool = "xz -dc" if path.endswith(".xz") else "cat"
        kernel.root.run(["sh", "-c", f'{tool} "$1" >"$2"', "sh", inner, out])
    early = [f"{_name(path)}\n" for path in list_modules(kernel, EARLY)]
    (to / "early").write_text("".join(early), encoding="ascii")


def _name(path: str) -> str:
    """Return the name that the kernel gives to a module's file."""
    return PurePath(path).name.partition(".")[0].replace("-", "_")
