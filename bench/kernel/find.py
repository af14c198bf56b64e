# SPDX-License-Identifier: GPL-2.0-only
"""Find a kernel image by name, and the module for it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bulkmm.control import module as modules
from bulkmm.control.system_files import SystemFiles
from bulkmm.shell.errors import BulkmmError, UsageError
from bulkmm.shell.progress import Progress
from lab.machine.build import ANY_KERNEL
from lab.paths import PROJECT, make_scratch

IMAGES = ("/boot/vmlinuz-{}", "/lib/modules/{}/vmlinuz")
DKMS = Path("/usr/src")  # where the package of the sources installs them
NO_MODULE = "none"  # instead of a module
OWN_MODULE = "default"  # that of the kernel, as where none is named


def find_image(name: str) -> Path | None:
    """Return the image in a file or of an installed release; None: ask the lab."""
    if Path(name).is_file():
        return Path(name)
    if "/" in name:
        raise BulkmmError(f"{name}: no such file")
    places = (Path(form.format(name)) for form in IMAGES)
    return next((file for file in places if file.is_file()), None)


@contextmanager
def find_module(release: str, progress: Progress) -> Iterator[Path | None]:
    """Yield the module for a kernel: installed, or built against its headers."""
    headers = Path(f"/lib/modules/{release}/build")
    if file := modules.find_installed(SystemFiles(Path("/")), release):
        yield Path(file)
    elif (sources := _sources()) and (headers / "Makefile").is_file():
        with make_scratch("bulkmm-module-") as build_dir:
            yield _build_module(release, headers, sources, build_dir, progress)
    else:
        yield None


def _sources() -> Path | None:
    """Return the directory of the module's sources: a checkout, or DKMS's."""
    places = [PROJECT, *sorted(DKMS.glob("bulkmm-*"), reverse=True)]
    return next((p for p in places if (p / "module" / "Kbuild").is_file()), None)


def _build_module(
    release: str, headers: Path, sources: Path, to: Path, progress: Progress
) -> Path:
    from bulkmm.shell import child

    for part in ("module", "core"):
        shutil.copytree(sources / part, to / part)
    argv = [*child.TIED, "make", "-C", str(headers), f"M={to}/module", "modules"]
    argv.append(ANY_KERNEL)
    with progress.step(f"building the module for {release}"):
        how = "name one by --module, or none"
        with child.explain_failure(f"the module does not build for {release} ({how})"):
            child.run_child(argv, 300)
    return to / "module" / "bulkmm.ko"


def of_lab(
    name: str, module_file: Path | None, progress: Progress, *, build_module: bool
) -> tuple[Path, Path | None]:
    """Return a kernel of the lab and its module; locks only to make them."""
    from lab import paths
    from lab.machine import build, cached, kernels, root

    paths.need_sources()
    choice = kernels.find_kernel(name)
    kernel = cached.find_cached(root.locate_root(paths.cache_dir()), choice)
    if not kernel or (build_module and not build.locate_build(kernel, []).is_dir()):
        cached.need_root()
        with cached.lock_with_kernels([choice], progress) as cache:
            kernel = cached.ensure_kernel(
                root.ensure_root(cache, progress), choice, progress
            )
            if build_module:
                build.ensure_products(kernel, [], progress)
    if build_module:
        module_file = build.locate_build(kernel, []) / "module" / "bulkmm.ko"
    return kernel.image, module_file


@contextmanager
def find_files(
    kernel: str, wanted: str | None, progress: Progress
) -> Iterator[tuple[Path, Path | None]]:
    """Yield the image and module that the command line selects."""
    module_file = None if wanted in (None, NO_MODULE) else Path(wanted)
    image_file = find_image(kernel)
    if not image_file:
        yield of_lab(kernel, module_file, progress, build_module=wanted is None)
    elif wanted is not None:
        yield image_file, module_file
    else:
        from bench.kernel import vmlinux

        release = vmlinux.read_release(image_file)
        with find_module(release, progress) as default_module:
            if not default_module:
                raise UsageError(
                    f"no bulkmm.ko for {release}, nor its headers here: "
                    f"name a --module, or {NO_MODULE}"
                )
            yield image_file, default_module
