# SPDX-License-Identifier: GPL-2.0-only
"""What each path needs of a kernel: hooks.toml as data."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("hooks.toml")


@dataclass(frozen=True)
class Needs:
    """What one path needs."""

    name: str
    modes: tuple[str, ...]
    hooks: tuple[str, ...]
    calls: tuple[tuple[str, ...], ...]
    with_options: tuple[str, ...]
    without_options: tuple[str, ...]
    only: str | None

    @property
    def symbols(self) -> list[str]:
        """Return all symbols that are looked up."""
        return [*self.hooks, *(name for group in self.calls for name in group)]


@dataclass(frozen=True)
class Table:
    """What the module needs, and each of its paths."""

    architectures: tuple[str, ...]
    with_options: tuple[str, ...]
    paths: tuple[Needs, ...]
    kernels: tuple[str, str]  # oldest and newest
    prototypes: dict[str, str]

    def supports(self, release: str) -> bool:
        """Return whether the module supports a kernel."""
        oldest, newest = map(version, self.kernels)
        return oldest <= version(release) <= newest


def version(release: str) -> tuple[int, ...]:
    """Return (6, 12) for 6.12.107+deb13-cloud-amd64."""
    return tuple(int(n) for n in re.findall(r"\d+", release)[:2])


def at_least(release: str, oldest: str) -> bool:
    """Return whether a kernel is of a series or of a later one."""
    return version(release) >= version(oldest)


def series(release: str) -> str:
    """Return "6.12" for 6.12.107+deb13-cloud-amd64."""
    return ".".join(map(str, version(release)))


def read(machine: str) -> Table:
    """Return what hooks.toml has for an architecture, by its kernel name."""
    held = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return Table(
        architectures=tuple(held["module"]["architectures"]),
        with_options=tuple(held["module"]["with"]),
        paths=tuple(
            Needs(
                name=name,
                modes=tuple(one["modes"]),
                # and those hooked only on this architecture
                hooks=(
                    *one["hooks"],
                    *one.get("on", {}).get(machine, {}).get("hooks", ()),
                ),
                calls=tuple(map(tuple, one.get("calls", ()))),
                with_options=tuple(one.get("with", ())),
                without_options=tuple(one.get("without", ())),
                only=one.get("only"),
            )
            for name, one in held["paths"].items()
        ),
        kernels=tuple(held["kernels"].get(machine, held["kernels"]["x86_64"])),
        prototypes=held["prototypes"],
    )
