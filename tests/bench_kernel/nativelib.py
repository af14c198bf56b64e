# SPDX-License-Identifier: GPL-2.0-only
"""Kernels of the lab, and the harness run by itself."""

import io
import lzma
import re
import resource
import signal
import tarfile
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from programs import run_program

from bench.kernel import find, measure, process, vmlinux
from bulkmm.results.model import Document
from bulkmm.shell.ending import SIGNALS
from bulkmm.shell.progress import Progress


@dataclass(frozen=True)
class Pair:
    """A kernel and its module."""

    series: str
    kernel: Path
    module: Path


def pair_of(series: str) -> Pair:
    """Return what the lab has cached, or makes now."""
    kernel, module = find.of_lab(series, None, Progress(), build_module=True)
    assert module
    return Pair(series, kernel, module)


SESSION = ExitStack()  # what is prepared, until the session ends


@cache
def prepared(kernel: Path, module: Path | None, mitigations: str) -> process.Prepared:
    """Return a kernel for the harness: preparing one takes longer than most runs.

    The signals that it holds meanwhile are not held from the tests that follow.
    """
    usual = {number: signal.getsignal(number) for number in SIGNALS}
    context = process.prepare_kernel(kernel, module, mitigations, Progress())
    try:
        return SESSION.enter_context(context)
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)


@dataclass(frozen=True)
class HarnessExit:
    """How the harness ended."""

    code: int
    message: str  # its last line
    out: str


def harness(ready: Path, *words: str, memory: int = -1) -> HarnessExit:
    """Run the harness on a directory, with so much address space."""
    result = run_program(
        [process.find_harness(), ready, *words],
        timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)),
    )
    return HarnessExit(
        result.returncode,
        (result.stderr.strip().splitlines() or [""])[-1],
        result.stdout,
    )


def tamper(ready: Path, name: str, value: int) -> None:
    """Change one of the facts."""
    file = ready / "names"
    text, count = re.subn(
        rf"^\w+ f {name}$", f"{value:x} f {name}", file.read_text(), flags=re.MULTILINE
    )
    assert count == 1
    file.write_text(text)


def deb(files: dict[str, bytes]) -> bytes:
    """Return a Debian package of these files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as out:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            out.addfile(info, io.BytesIO(content))
    members = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd"}
    members["data.tar.xz"] = lzma.compress(packed.getvalue())
    package = vmlinux.PACKAGE
    for name, content in members.items():
        head = f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n"
        package += head.encode() + content + b"\n" * (len(content) % 2)
    return package


SIZES = {"memmap": 3 << 30, "clear": 64 << 20, "copy": 16 << 20, "vmap": 100 << 20}


def small(pair: Pair, subject: str) -> measure.Job:
    return measure.Job(
        pair.kernel, pair.module, rounds=1, processes=1, size=SIZES[subject]
    )


def measure_subjects(job: measure.Job, *subjects: str) -> Document:
    ready = prepared(job.kernel, job.module, job.mitigations)
    return measure.measure_prepared(ready, job, subjects)


def wrong(document: Document) -> list[str]:
    return [check.name for check in document.checks if not check.ok]
