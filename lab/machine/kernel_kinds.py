# SPDX-License-Identifier: GPL-2.0-only
"""The kernels of the lab's own configuration and their options.

Each is "make allnoconfig" plus fragments in lab/kernels. What only one series or one
architecture has is in a file of its own beside NAME.config: NAME-SERIES.config, or
NAME-ARCH.config, which also takes options back ("is not set").
"""

import re
from dataclasses import dataclass
from pathlib import Path

from lab.machine.arch import ARM64, X86_64, Arch
from lab.paths import FRAGMENTS, UPSTREAM, content_key

NEWEST = X86_64.series[-1]
PATCH = "000[1-9]-*.patch"  # 0000 is a cover letter
SETS = re.compile(r"(CONFIG_\w+)=(.+)|# (CONFIG_\w+) is not set")
CHANGES = re.compile(r"^\+\+\+ b/(.+)$", re.MULTILINE)
CODE = re.compile(r"^(?=diff --git |--- a/)", re.MULTILINE)  # of a patch, from here on
OWN_RELEASE = re.compile(r"-([\w.-]+)\.[0-9a-f]{6}-")  # see Kind.release()
SELFTESTS = "tools/testing/selftests/"
# what a patch adds: an option that builds tests in, and the name of their suite
TEST = re.compile(r"^\+config (\w+_KUNIT_TEST)$", re.MULTILINE)
SUITE = re.compile(
    r'^\+static struct kunit_suite \w+ = \{\n\+\t\.name = "(.+)",$', re.MULTILINE
)
ZEROES = re.compile(r"\binit_on_(?:alloc|free)=1")


def list_patches(series: str) -> list[Path]:
    """Return the patches in upstream/ for a series, without cover letters."""
    return sorted(UPSTREAM.glob(f"{series}/*/{PATCH}"))


def read_changes(patch: Path) -> str:
    """Return the text of a patch without its message."""
    return CODE.split(patch.read_text(encoding="utf-8"), maxsplit=1)[-1]


@dataclass(frozen=True)
class Kind:
    """A configuration and the parameters of guests with such a kernel."""

    name: str
    fragments: tuple[str, ...]
    series: str = NEWEST  # of the source
    can_poison: bool = False  # fill freed memory with a pattern and check it
    slow: int = 1  # time limits relative to a stock kernel's
    parameters: str = ""  # for its command line
    no_disks: bool = False  # the kernel itself warns when one is removed
    patched: bool = False  # with the patches in upstream/ for the series
    plant: str = ""  # a patch in lab/kernels that makes a path stay off
    compares_callers: bool = False  # the module is built as for a stock kernel
    arch: Arch = X86_64
    compiler: str = X86_64.compiler

    @property
    def patches(self) -> list[Path]:
        """Return the patches that its source gets."""
        planted = [FRAGMENTS / self.plant] if self.plant else []
        return [*planted, *(list_patches(self.series) if self.patched else ())]

    @property
    def subjects(self) -> set[str]:
        """Return the names of their series: memmap, clear and so on."""
        return {patch.parent.name for patch in self.patches}

    @property
    def replaces_clear(self) -> bool:
        """Return whether its patches clear past the caches: path clear stays off."""
        return "clear" in self.subjects and self.arch is X86_64

    @property
    def test_patches(self) -> list[Path]:
        """Return those of its series that only change the kernel's selftests.

        A kernel without patches is tested as well, to see that it fails.
        """
        return [
            patch
            for patch in list_patches(self.series)
            if all(
                name.startswith(SELFTESTS)
                for name in CHANGES.findall(patch.read_text(encoding="utf-8"))
            )
        ]

    @property
    def files(self) -> list[Path]:
        """Return the fragments."""
        names = (
            f"{fragment}{end}.config"
            for fragment in self.fragments
            for end in ("", f"-{self.series}", f"-{self.arch.name}")
        )
        return [path for name in names if (path := FRAGMENTS / name).is_file()]

    @property
    def text(self) -> str:
        """Return the text of all fragments, and the options of the patches' tests."""
        fragments = [file.read_text(encoding="ascii") for file in self.files]
        tests = [f"CONFIG_{option}=y\n" for option in self._find_added(TEST)]
        return "".join((*fragments, *tests))

    @property
    def suites(self) -> list[str]:
        """Return the KUnit suites that the patches add."""
        return self._find_added(SUITE)

    def _find_added(self, pattern: re.Pattern[str]) -> list[str]:
        """Return what the patches add: the pattern's group in each."""
        texts = (patch.read_text(encoding="utf-8") for patch in self.patches)
        return [match for text in texts for match in pattern.findall(text)]

    @property
    def proves_locking(self) -> bool:
        """Return whether it has lockdep."""
        return "CONFIG_PROVE_LOCKING" in parse_options(self.text)

    def poisons(self, words: str) -> bool:
        """Return whether a guest with these parameters poisons freed memory.

        A kernel that does so does not zero what it allocates.
        """
        return self.can_poison and not ZEROES.search(words)

    def release(self, version: str) -> str:
        """Return the release of a build from a version's source.

        It has a hash of fragments and of what the patches change, so whatever is cached
        by release is of this configuration.
        """
        key = content_key(self.files, *map(read_changes, self.patches))[:6]
        return f"{version}-{self.name}.{key}-{self.arch.debian}"


PLAIN = ("guest", "plain", "tests")
# identify_cpu() (arch/x86/kernel/cpu/common.c, 7.3.4) clears what the boot CPU can do
# before it reads it again. In an interrupt at that time pgtable_l5_enabled() is false,
# and KASAN reports the first access to the direct map of five levels as wild
FOUR_LEVELS = "no5lvl"
KINDS = (
    Kind("debug", ("guest", "debug"), can_poison=True, slow=8),
    # bdev_free_inode() frees a gendisk before its queue's kobject is released
    Kind(
        "debug-kobject",
        ("guest", "debug", "kobject"),
        can_poison=True,
        slow=8,
        no_disks=True,
    ),
    Kind("kasan", ("guest", "kasan"), slow=8, parameters=FOUR_LEVELS),
    Kind("clang-cfi", ("guest", "clang-cfi"), compiler="clang-19"),
    # what another distribution builds, and the same with a call that has moved
    Kind("cachyos", ("guest", "cachyos"), compares_callers=True),
    Kind("moved", ("guest", "cachyos"), plant="moved.patch", compares_callers=True),
    # the same configuration: a ratio between these two is the patches' alone
    Kind("base", PLAIN),
    Kind("patched", PLAIN, patched=True),
    Kind(
        "patched-kasan",
        ("guest", "kasan", "hugetlb", "tests"),
        patched=True,
        slow=8,
        parameters=FOUR_LEVELS,
    ),
    Kind("patched-arm64", PLAIN, patched=True, arch=ARM64, compiler=ARM64.compiler),
    # and these two
    Kind("base-6.12", PLAIN, series="6.12"),
    Kind("patched-6.12", PLAIN, series="6.12", patched=True),
)
NAMES = tuple(kind.name for kind in KINDS)
PATCHED = tuple(kind.name for kind in KINDS if kind.patched)
# of these, those on which the module's paths may attach
PATCHED_HOOKED = tuple(
    kind.name for kind in KINDS if kind.patched and "kasan" not in kind.fragments
)
# the same without patches
BASES = tuple(
    kind.name for kind in KINDS if kind.fragments == PLAIN and not kind.patched
)


def find_kind(name: str) -> Kind | None:
    """Return the kind with this name; None: a stock kernel's name."""
    return next((kind for kind in KINDS if kind.name == name), None)


def of_release(release: str) -> Kind | None:
    """Return the kind that a release is of; None: a stock kernel's."""
    match = OWN_RELEASE.search(release)
    return find_kind(match[1]) if match else None


def list_names(arch: Arch) -> tuple[str, ...]:
    """Return the names of an architecture's kinds."""
    return tuple(kind.name for kind in KINDS if kind.arch is arch)


def parse_options(text: str) -> dict[str, str]:
    """Return the options that fragments, or a configuration, set in the end."""
    options = {}
    for match in filter(None, map(SETS.fullmatch, text.splitlines())):
        name, value, unset = match.groups()
        options[name or unset] = value or "n"
    return {name: value for name, value in options.items() if value != "n"}


def list_lacking(fragments: str, config: str) -> list[str]:
    """Return messages for options of fragments that a configuration lacks."""
    has = parse_options(config)
    return [
        f"{name} is {has.get(name, 'n')}, not {value}"
        for name, value in parse_options(fragments).items()
        if has.get(name, "n") != value
    ]
