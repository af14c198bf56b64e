# SPDX-License-Identifier: GPL-2.0-only
"""A stock kernel with the module, Python and the command in it."""

import json
import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commandlib import Result
from lablib import lock_kernel

from bulkmm.shell.progress import Progress
from lab import paths
from lab.machine import accel, build, image, suites, vm
from lab.machine.kernels import Kernel

Step = tuple[str, ...]

PMEM = ("libnvdimm", "nd_btt", "nd_pmem", "nd_e820")  # drivers of its device
MEMORY = 1024
# Each step is a command's words, or a line for the shell. One Python does them
# all: under emulation it takes longer to start than to run.
RUNNER = """
import contextlib, io, json, os, subprocess, sys
sys.path.insert(0, "/command")
from bulkmm import cli
os.environ["COLUMNS"] = "100"  # as on a terminal, which its streams are not
with open("/steps.json") as file, os.fdopen(3, "w") as home:
    for step in json.load(file):
        if step[0] == "sh":
            run = subprocess.run(["sh", "-c", step[1]], capture_output=True, text=True)
            code, out, err = run.returncode, run.stdout, run.stderr
        else:
            streams = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(streams[0]):
                with contextlib.redirect_stderr(streams[1]):
                    code = int(cli.main(step))
            out, err = (part.getvalue() for part in streams)
        print(json.dumps({"event": "step", "code": code, "out": out, "err": err}),
              file=home, flush=True)
"""
JOB = "must python3.13 /runner.py\n"


@dataclass(frozen=True)
class Results:
    """What became of each step on a kernel."""

    kernel: str
    steps: dict[str, Result]

    def __getitem__(self, name: str) -> Result:
        """Return a step."""
        return self.steps[name]

    def json(self, name: str, code: int = 0) -> dict[str, Any]:
        """Return the document of a step that ended with this code, in a line if any."""
        assert self[name].code == code, self[name]
        assert self[name].err.count("\n") <= 1
        return self[name].json

    def paths(self, name: str, code: int = 0) -> dict[str, dict[str, Any]]:
        """Return the paths of a document."""
        return {path["name"]: path for path in self.json(name, code)["paths"]}


def run_steps(
    kernel: str, steps: dict[str, Step], words: str = "", **machine: Any
) -> Results:
    """Do all steps on a kernel."""
    results = run_guest(kernel, list(steps.values()), words, **machine)
    return Results(kernel, dict(zip(steps, results, strict=True)))


def run_guest(
    name: str, steps: list[Step], words: str = "", device: str = "64M", **machine: Any
) -> list[Result]:
    """Boot a kernel and return what became of each step; machine: of vm.Guest."""
    progress = Progress()
    paths.need_sources()
    with ExitStack() as stack:
        with lock_kernel(name) as kernel:
            build_dir = build.ensure_products(kernel, [], progress)
            base = image.ensure_base(kernel, PMEM, progress)
            at = stack.enter_context(vm.run_directory(kernel.root))
            over = [suites.ensure_tree(kernel, suites.COMMAND, progress), at / "extra"]
            _pack_steps(kernel, over[1], steps)
            modules = [build_dir / name for name in build.PRODUCTS]
            whole = image.pack_initramfs(kernel.root, base, at, JOB, modules, over=over)
            accelerator = accel.choose_accelerator("auto", kernel, base, progress)
            words = f"{words} memmap={device}!512M"
            machine = {"memory": MEMORY, "accel": accelerator, "words": words} | machine
            guest = vm.Guest(kernel.image, whole, **machine)
        stack.enter_context(paths.wait_turn(progress))
        outcome = vm.boot_guest(guest, kernel.root, at)
    events = outcome.of("step")
    assert len(events) == len(steps), outcome.log[-2000:]
    return [Result(one["code"], one["out"], one["err"]) for one in events]


def _pack_steps(kernel: Kernel, tree: Path, steps: list[Step]) -> None:
    tree.mkdir()
    (tree / "runner.py").write_text(RUNNER)
    (tree / "steps.json").write_text(json.dumps(steps))
    # the configuration is where this kernel's packages have it
    for place in (
        f"boot/config-{kernel.release}",
        f"lib/modules/{kernel.release}/config",
    ):
        config = kernel.root.path / place
        if config.is_file():
            (tree / place).parent.mkdir(parents=True)
            shutil.copy(config, tree / place)
