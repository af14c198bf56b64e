# SPDX-License-Identifier: GPL-2.0-only
"""What each path needs of a kernel, and which kernels there are.

Read from what the module is built from: paths.def and kernels.mk (links to
module/, so that both are in the package).
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

PATHS = Path(__file__).with_name("paths.def")
KERNELS = Path(__file__).with_name("kernels.mk")
ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "arm64"}  # ours by the kernel's name
# options that all paths need
WITH = (
    *("MODULES", "DYNAMIC_FTRACE_WITH_DIRECT_CALLS", "KPROBES", "DEBUG_INFO_BTF"),
    *("HUGETLB_PAGE", "ZONE_DEVICE"),  # to build: module/compat/supported.mk
)
# the one case of clearing (see bulkmm status) in which a path has a use
ONLY = {"alloc": "allocator"}
# the path whose hooks a path needs as well
LENDERS = {"prezero": "clear"}
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
STATEMENT = re.compile(
    r"^(?:#(?P<directive>\w+) *(?P<condition>.*)|BMM_PATH(?P<kind>\w*)"
    r"\((?P<words>[^)]*)\))$",
    re.MULTILINE,
)


@dataclass
class Requirements:
    """What one path needs."""

    name: str
    modes: list[str]
    settings: list[str] = field(default_factory=list)  # keys of "bulkmm tune"
    # functions by our name, those that some kernel has: one of each is needed, of
    # hooks only the first
    hooks: dict[str, list[str]] = field(default_factory=dict)
    calls: dict[str, list[str]] = field(default_factory=dict)
    with_options: list[str] = field(default_factory=list)
    without_options: list[str] = field(default_factory=list)
    # of kernels that do its work themselves
    without_functions: list[str] = field(default_factory=list)
    without_members: list[str] = field(default_factory=list)  # "struct.member"
    lender: "Requirements | None" = None  # what that needs, it needs too

    @property
    def only(self) -> str | None:
        """Return the only case of clearing in which it has a use."""
        return ONLY.get(self.name)

    @property
    def needed(self) -> list[list[str]]:
        """Return the functions of which it needs one each."""
        return [*[*self.hooks.values()][:1], *self.calls.values()]

    @property
    def optional(self) -> list[list[str]]:
        """Return the functions that it hooks but makes do without."""
        return [*self.hooks.values()][1:]

    @property
    def symbols(self) -> list[str]:
        """Return all symbols that are looked up."""
        return [name for group in [*self.needed, *self.optional] for name in group]


@dataclass
class Table:
    """What the module needs on an architecture, and each of its paths."""

    tested: tuple[str, ...]  # series that the module builds for, from the oldest
    paths: list[Requirements] = field(default_factory=list)
    # of each function, in the words of BTF: those that it has on some kernel
    prototypes: dict[str, list[str]] = field(default_factory=dict)

    def supports(self, release: str) -> bool:
        """Return whether the module builds for a kernel and loads into it."""
        return series_of(release) in self.tested

    def encloses(self, release: str) -> bool:
        """Return whether a kernel is neither older nor newer than all tested."""
        oldest, newest = map(parse_version, (self.tested[0], self.tested[-1]))
        return oldest <= parse_version(release) <= newest

    def add_statement(self, kind: str, words: list[str]) -> None:
        """Add a statement."""
        path, first, *rest = words
        paths = {one.name: one for one in self.paths}
        if not kind:
            lender = paths.get(LENDERS.get(path, ""))
            self.paths.append(Requirements(path, modes=rest, lender=lender))
            return
        needs = paths[path]
        if kind == "_SETTING":
            needs.settings.append(f"{path}.{first}")
        elif kind == "_PARAMETER":
            needs.settings.append(first)
        elif kind == "_WITH":
            needs.with_options.append(first)
        elif kind == "_WITHOUT":
            needs.without_options.append(first)
        elif kind == "_WITHOUT_FUNCTION":
            needs.without_functions.append(first)
        elif kind == "_WITHOUT_MEMBER":
            needs.without_members.append(".".join((first, *rest)))
        elif kind != "_MEMBER":  # only a build knows where members are
            function, *types = rest
            groups = needs.calls if kind == "_CALL" else needs.hooks
            group = groups.setdefault(first, [])
            if function not in group:
                group.append(function)
            self.prototypes.setdefault(function, []).append(_format_prototype(*types))


def _format_prototype(returns: str, *takes: str) -> str:
    """Return a prototype as BTF has it."""
    prototype = f"{returns} ({', '.join(takes)})"
    return prototype.replace("unsigned long", "long unsigned int")


def parse_version(release: str) -> tuple[int, ...]:
    """Return (6, 12) for 6.12.107+deb13-cloud-amd64."""
    return tuple(int(n) for n in re.findall(r"\d+", release)[:2])


def is_at_least(release: str, oldest: str) -> bool:
    """Return whether a kernel is of a series or of a later one."""
    return parse_version(release) >= parse_version(oldest)


def series_of(release: str) -> str:
    """Return "6.12" for 6.12.107+deb13-cloud-amd64."""
    return ".".join(map(str, parse_version(release)))


def read_kernels(name: str) -> tuple[str, ...]:
    """Return a line of kernels.mk."""
    text = KERNELS.read_text(encoding="ascii")
    lines = re.findall(rf"^{re.escape(name)} := (.*)$", text, re.MULTILINE)
    return tuple(word for line in lines for word in line.split())


def read_table(machine: str) -> Table:
    """Return what the module needs on an architecture, by its kernel's name or ours."""
    arch = ARCHITECTURES.get(machine, machine)
    arch = arch if arch in ARCHITECTURES.values() else "x86_64"
    series = sorted(read_kernels(f"tested-{arch}"), key=parse_version)
    table = Table(tested=tuple(series))
    foreign_options = [
        f"CONFIG_{one.upper()}" for one in ARCHITECTURES.values() if one != arch
    ]
    is_foreign = False
    for statement in STATEMENT.finditer(COMMENT.sub("", PATHS.read_text("ascii"))):
        if statement["directive"]:
            # of what a kernel has, all cases count; of an architecture, its own
            is_foreign = statement["condition"] in foreign_options
        elif not is_foreign:
            words = [
                " ".join(w.split()).strip('"') for w in statement["words"].split(",")
            ]
            table.add_statement(statement["kind"], words)
    return table
