# SPDX-License-Identifier: GPL-2.0-only
"""The blocks of docs/tour.md: what commands print in a guest, in this order."""

import os
import re
import subprocess
import sys

import guest
from commandlib import Result
from guest import Step

from lab.paths import PROJECT as ROOT

KERNEL, WORDS = "7.3", "init_on_alloc=1"
POPULATE = "bmmfault -n 40 -b 8 hugetlb 2048 madv-populate"
COUNTS_FILE, START = "/before.json", ("--", "sh", "-c", f"{POPULATE} >&2")
LOOP = f"(while {POPULATE}; do :; done) >/dev/null 2>&1 & echo $! >/pid"
DEVICE = f"for name in {' '.join(guest.PMEM)}; do insmod /lib/modules/$name.ko; done"
# What a block begins with on the page, and the step: words of the command.
BLOCKS: dict[str, Step] = {
    "bulkmm doctor": ("doctor",),
    "bulkmm worth -o before.json -- ./start-guest": (
        "worth",
        "-o",
        COUNTS_FILE,
        *START,
    ),
    "bulkmm on clear": ("on", "clear"),
    "bulkmm worth --compare before.json -- ./start-guest": (
        *("worth", "--compare", COUNTS_FILE),
        *START,
    ),
    "bulkmm status": ("status",),
    "bulkmm watch clear --count 2": ("watch", "clear", "--count", "2"),
    "bulkmm off": ("off",),
    "bulkmm status clear": ("status", "clear"),
    "bulkmm doctor | grep -A 4 '^in the way'": (
        "sh",
        "cd /command && python3.13 -m bulkmm.cli doctor | grep -A 4 '^in the way'",
    ),
}
# Steps that the page does not show, before the block named.
HIDDEN: dict[str, Step] = {
    "bulkmm worth -o before.json -- ./start-guest": (
        "sh",
        "echo 80 >/proc/sys/vm/nr_hugepages",
    ),
    "bulkmm on clear": ("sh", "insmod /lib/modules/bulkmm.ko"),
    "bulkmm status": ("sh", DEVICE),
    "bulkmm watch clear --count 2": ("sh", LOOP),
    "bulkmm off": ("sh", "kill $(cat /pid)"),
    "bulkmm doctor | grep -A 4 '^in the way'": (
        "sh",
        "rmmod bulkmm && echo 1 >/proc/sys/kernel/modules_disabled",
    ),
}
PAGE = ROOT / "docs" / "tour.md"
BLOCK = re.compile(r"^```console\n([#$] .*\n)((?:.*\n)*?)```$", re.MULTILINE)
RESULT = "results/AuthenticAMD-25-17-1/kernel-7.3.json"
# signs of two or three bytes are in no line more than ten bytes
COLUMNS = 90
TAIL = 29  # lines of the result that the page shows


def list_steps() -> list[tuple[str, Step]]:
    """Return the steps of the guest, each with its block's first line, or none."""
    steps: list[tuple[str, Step]] = []
    for title, step in BLOCKS.items():
        steps += [("", HIDDEN[title])] if title in HIDDEN else []
        steps.append((title, step))
    return steps


def run_tour() -> dict[str, Result]:
    """Return what the guest printed, by block; hidden steps must succeed."""
    steps = list_steps()
    results = guest.run_guest(KERNEL, [step for _, step in steps], WORDS)
    for (title, step), result in zip(steps, results, strict=True):
        assert title or result.code == 0, (step, result)
    pairs = zip(steps, results, strict=True)
    return {title: result for (title, _), result in pairs if title}


def show_result() -> str:
    """Return the end of what is printed of a kept result."""
    command = [sys.executable, "-m", "bulkmm.cli", "show", RESULT]
    width = {**os.environ, "COLUMNS": str(COLUMNS)}
    run = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=ROOT, env=width
    )
    return "".join(run.stdout.splitlines(keepends=True)[-TAIL:])


def list_blocks() -> dict[str, str]:
    """Return what the page shows, by the line of the command."""
    return dict(BLOCK.findall(PAGE.read_text()))


def write_page() -> None:
    """Put what the guest and the result say now into the page."""
    blocks = {f"# {title}\n": run.out + run.err for title, run in run_tour().items()}

    def fill(match: re.Match[str]) -> str:
        output = blocks[match[1]] if match[1] in blocks else show_result()
        return f"```console\n{match[1]}{trim_lines(output)}```"

    PAGE.write_text(BLOCK.sub(fill, PAGE.read_text()))


def trim_lines(text: str) -> str:
    """Return a text without spaces at the ends of its lines."""
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


if __name__ == "__main__":
    write_page()
