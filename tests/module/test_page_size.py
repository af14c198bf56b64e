# SPDX-License-Identifier: GPL-2.0-only
"""A page size that no kernel at hand has: vmap is off there, and all compiles."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from bulkmm.lab import paths
from bulkmm.lab.machine import arch, build, kernels, root
from bulkmm.lab.progress import Progress

# What CONFIG_ARM64_16K_PAGES changes, over the configuration of 4 KiB.
PAGES_OF_16K = {
    "CONFIG_ARM64_4K_PAGES": "",
    "CONFIG_ARM64_16K_PAGES": "1",
    "CONFIG_PAGE_SHIFT": "14",
    "CONFIG_ARM64_CONT_PTE_SHIFT": "7",
    "CONFIG_ARM64_CONT_PMD_SHIFT": "5",
}
SOURCES = ("memmap.c", "vmap*.c")
OBJECTS = sorted(
    file.with_suffix(".o").name
    for pattern in SOURCES
    for file in (build.PROJECT / "module").glob(pattern)
)


@pytest.mark.vm
def test_pages_of_16_kib_do_not_stop_the_build() -> None:
    progress = Progress()
    with paths.locked(progress) as cache:
        where = root.ensure(cache, progress)
        kernel = kernels.ensure(where, "7.3", progress, arch.ARM64)
        part = Path(tempfile.mkdtemp(dir=where.var))
        try:
            for file in build.sources():
                to = part / file.relative_to(build.PROJECT)
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, to)
            lines = [
                f"#undef {name}\n" + (f"#define {name} {value}\n" if value else "")
                for name, value in PAGES_OF_16K.items()
            ]
            (part / "pages.h").write_text("".join(lines))
            flags = f"KCFLAGS=-include {where.inner(part / 'pages.h')}"
            module = f"M={where.inner(part / 'module')}"
            where.run(["make", "-C", kernel.headers, module, flags, *OBJECTS], 300)
            assert all((part / "module" / name).is_file() for name in OBJECTS)
        finally:
            shutil.rmtree(part)
