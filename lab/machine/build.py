# SPDX-License-Identifier: GPL-2.0-only
"""Building the module for a stock kernel, inside the root."""

import re
from pathlib import Path

from bulkmm.shell.child import explain_failure
from bulkmm.shell.errors import BulkmmError, UsageError
from bulkmm.shell.progress import Progress
from lab.machine import kernel_kinds
from lab.machine.kernels import Kernel
from lab.paths import PROJECT, content_key, copy_sources, ensure_directory

PRODUCTS = (
    "module/bulkmm.ko",
    "lab/guest/module/bulkmm_lab.ko",
    "lab/guest/module/bulkmm_vmaptest.ko",
    "lab/guest/module/bulkmm_namesake.ko",
    "lab/guest/module/bulkmm_livepatch.ko",
)
GUEST_MODULE = "lab/guest/module"
SOURCE = {".c", ".h", ".S", ".mk", ".def"}
SOURCE_VERSION = re.compile(rb"\0srcversion=([0-9A-F]+)\0")  # in .modinfo
# for make: of any series, and hooks functions whoever calls them
ANY_KERNEL = "BMM_ANY_KERNEL=1"
STRICT = ("W=1", "C=1")  # the compiler's further warnings, and sparse's
DEFINE = re.compile(r"[A-Z][A-Z0-9_]*(=[A-Za-z0-9_]+)?")


def parse_defines(defines: list[str]) -> list[str]:
    """Return make variables of the form NAME or NAME=VALUE; reject others."""
    for define in defines:
        if not DEFINE.fullmatch(define):
            raise UsageError(f"bad define {define}: give NAME or NAME=VALUE")
    return sorted(d if "=" in d else f"{d}=1" for d in defines)


def list_sources() -> list[Path]:
    """Return the files that the module and the guest's own are built from."""
    files = []
    for top in ("module", "core", "lab/guest/module"):
        for file in (PROJECT / top).rglob("*"):
            is_generated = file.name.endswith(".mod.c")  # made by a build in the tree
            if not is_generated and (file.suffix in SOURCE or file.name == "Kbuild"):
                files.append(file)
    return files


def locate_build(kernel: Kernel, defines: list[str]) -> Path:
    """Return the directory for a build of these sources; it need not exist."""
    key = content_key([*list_sources(), Path(__file__)], kernel.release, *defines)
    return kernel.root.var / "build" / f"{kernel.release}-{key}"


def ensure_products(
    kernel: Kernel, defines: list[str], progress: Progress, *, strict: bool = False
) -> Path:
    """Return the directory with the PRODUCTS; strict refuses warnings."""
    words = [*defines, *(STRICT if strict else ())]

    def build_products(part: Path) -> None:
        output = run_make(kernel, part, words)
        if strict and "warning:" in output:
            raise BulkmmError(f"the module builds with warnings:\n{output}")

    step = f"building the module for {kernel.release}"
    return ensure_directory(locate_build(kernel, words), step, progress, build_products)


def source_version(module: Path) -> str:
    """Return the srcversion that the kernel's build gives a module."""
    match = SOURCE_VERSION.search(module.read_bytes())
    return match[1].decode() if match else ""


def run_make(kernel: Kernel, to: Path, words: list[str]) -> str:
    """Build in a new directory of the root; return what the build printed.

    Compilers inline other functions in most configurations of the lab's own.
    """
    kind = kernel_kinds.of_release(kernel.release)
    if kind and not kind.compares_callers:
        words = [*words, ANY_KERNEL]
    copy_sources(list_sources(), to)
    output = build_modules(kernel, to / "module", "the module", *words)
    output += build_modules(kernel, to / GUEST_MODULE, "the guest's module", *words)
    for product in PRODUCTS:
        if not (to / product).is_file():
            raise BulkmmError(f"the build made no {product}:\n{output}")
    return output


def build_modules(kernel: Kernel, place: Path, label: str, *words: str) -> str:
    """Build a kernel's modules in a place, with the compiler that built the kernel."""
    argv = ["make", "-j2", "-C", kernel.headers, f"M={kernel.root.inner(place)}"]
    words = (*words, *kernel.arch.make_words, f"CC={kernel.compiler}")
    with explain_failure(f"{label} does not build for {kernel.release}", whole=True):
        return kernel.root.run([*argv, *words, "modules"], 900)
