# SPDX-License-Identifier: GPL-2.0-only
"""A scenario with an option, a series and a path, added to a copy of the tree."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import fakekernel
import pytest
from programs import run_program

from bulkmm.control import requirements
from lab.machine.arch import X86_64
from lab.paths import PROJECT

PARTS = ("bench", "bulkmm", "core", "lab", "lib", "module")
SERIES = "7.12"  # later than 7.3, but not as text
PATH = """
BMM_PATH(extra, "off", "off", "half", "full")
BMM_PATH_HOOK(extra, extra, extra_function, void, struct page *, unsigned long)
BMM_PATH_CALL(extra, extra_helper, extra_helper, int, void)
BMM_PATH_WITHOUT(extra, KASAN)
"""
# all of a scenario with an option of its own: file, where, what
ADDED = (
    (
        "lab/scenario/vmap.py",
        "SCENARIOS = (\n",
        """    Checked(
        "vmap-extra",
        "vmap() of something",
        takes=("seed", "arms", "arrays", "extra"),
    ),
""",
    ),
    (
        "lab/choices.py",
        "--part parts:NAME...",
        "--extra N<1..9> = 7  take N of something\n",
    ),
)
# what main.c and prototype.h make of the statements, with nothing of a kernel
EXPANDED = r"""
#include <stdio.h>
struct zone; struct page; struct folio; struct dev_pagemap; struct mhp_params;
struct vm_area_struct; struct vm_struct; struct vmem_altmap; struct hstate;
enum migratetype { A };
typedef unsigned long pgprot_t, phys_addr_t; typedef int gfp_t; typedef _Bool bool;
typedef struct { unsigned long bits; } nodemask_t;
#define BMM_PATH(path, load, ...) \
	static const char *const path##_modes[] = { __VA_ARGS__, NULL };
#define BMM_PATH_HOOK(path, name, function, ret, ...) \
	typedef ret name##_fn(__VA_ARGS__);
#define BMM_PATH_CALL BMM_PATH_HOOK
#include "module/paths.def"
int main(void)
{
	extra_fn *hooked = NULL;
	extra_helper_fn *called = NULL;

#define BMM_PATH(path, load, ...) printf("%s %s\n", #path, path##_modes[1]);
#include "module/paths.def"
	return hooked || called;
}
"""


@pytest.fixture
def grown(tmp_path: Path) -> Path:
    """Return a copy of the tree with the scenario and its option."""
    copy = tmp_path / "tree"
    leave = shutil.ignore_patterns("__pycache__", "*.o", "*.ko")
    for name in PARTS:
        shutil.copytree(PROJECT / name, copy / name, symlinks=True, ignore=leave)
    shutil.copy(PROJECT / "Makefile", copy)
    for name, where, addition in ADDED:
        text = (copy / name).read_text()
        assert text.count(where) == 1
        before = name.endswith("choices.py")
        whole = addition + where if before else where + addition
        (copy / name).write_text(text.replace(where, whole))
    return copy


@pytest.fixture
def tree(grown: Path) -> Path:
    """Return it with the series and the path as well."""
    copy = grown
    kernels = copy / "module/compat/kernels.mk"
    text = kernels.read_text()
    lines = r"^(?:tested|pinned)-x86_64 .*"
    text = re.sub(lines, rf"\g<0> {SERIES}", text, flags=re.MULTILINE)
    kernels.write_text(text)
    paths = copy / "module/paths.def"
    text = paths.read_text()
    head, undefined, tail = text.partition("\n#undef BMM_PATH\n")
    assert undefined
    paths.write_text(f"{head}{PATH}{undefined}{tail}")
    return copy


def run_command(tree: Path, *words: str) -> tuple[int, str]:
    """Run the copy's command."""
    result = run_program(
        [sys.executable, "-P", "-m", "bulkmm.cli", *words],
        env={**os.environ, "PYTHONPATH": str(tree)},
    )
    return result.returncode, result.stdout + result.stderr


def test_the_lab_knows_the_scenario_and_its_option(grown: Path) -> None:
    code, output = run_command(grown, "lab", "list", "vmap-extra", "--json")
    assert code == 0
    (scenario,) = json.loads(output)["scenarios"]
    assert "--extra" in scenario["takes"]
    run = ("lab", "run", "vmap-extra", "--extra")
    assert "--extra: 10: give 1 to 9" in run_command(grown, *run, "10")[1]
    refusal = run_command(grown, "lab", "run", "vmap-faults", "--extra", "3")
    assert "--extra does not apply to vmap-faults" in refusal[1]


@pytest.mark.vm
@pytest.mark.release
def test_the_scenario_runs(grown: Path, tmp_path: Path) -> None:
    few = ("--arrays", "5", "--arm", "off", "--arm", "pte")
    file = tmp_path / "result.json"
    words = ("vmap-extra", "--extra", "3", *few, "-o", str(file))
    code, output = run_command(grown, "lab", "run", *words)
    assert code == 0, output
    checked = json.loads(file.read_text())["run"]["checked"]
    assert {event["label"] for event in checked} == {"random", "planted"}


def test_the_lab_knows_the_series(tree: Path) -> None:
    code, output = run_command(tree, "lab", "list", "--kernel", SERIES, "--json")
    assert code == 0
    old = json.loads(run_command(tree, "lab", "list", "--kernel", "7.3", "--json")[1])
    new = {one["name"] for one in json.loads(output)["scenarios"]}
    assert new == {one["name"] for one in old["scenarios"]}  # "since 7.3" among them
    unknown = run_command(tree, "lab", "list", "--kernel", "5.10")
    assert f"{' or '.join([*X86_64.tested, SERIES])}, or" in unknown[1]


def test_make_knows_the_series(tree: Path) -> None:
    command = ["make", "-n", "-C", str(tree), "figures"]
    result = run_program(command, check=True)
    assert f"for series in {' '.join([*X86_64.series, SERIES])};" in result.stdout
    rules = tree / "module/compat/supported.mk"
    options = ["--eval", "known: ; @echo $(bmm-known)", "known", "VERSION=7"]
    for patchlevel, expected in ("9", ""), ("12", "y"), ("13", ""):
        command = ["make", "-sf", str(rules), *options, f"PATCHLEVEL={patchlevel}"]
        result = run_program(command, check=True)
        assert result.stdout.strip() == expected


def test_the_command_knows_both(tree: Path, tmp_path: Path) -> None:
    release = f"{SERIES}.1+deb13-cloud-amd64"
    fake = fakekernel.load_module(fakekernel.make_kernel(tmp_path, release))
    names = fake.read("/proc/kallsyms").splitlines()
    names += [f"0 t {name}" for name in ("extra_function", "extra_helper")]
    fake.write("/proc/kallsyms", "\n".join(names))
    tracing = "/sys/kernel/tracing/available_filter_functions"
    fake.write(tracing, f"{fake.read(tracing)}\nextra_function")
    fake.write("/sys/kernel/bulkmm/extra/mode", "off half [full]", 0o644)
    fake.write("/sys/kernel/bulkmm/extra/hook", "0 extra_function: attached")
    root = ("--root", str(tmp_path))
    code, output = run_command(tree, "status", "extra", *root)
    assert (code, "extra_function  attached" in output) == (0, True)
    report = json.loads(run_command(tree, "doctor", "--json", *root)[1])
    (kernel,) = (one for one in report["checks"] if one["name"] == "kernel")
    assert kernel["state"] == "ok"
    verdicts = {path["name"]: path["verdict"] for path in report["paths"]}
    assert verdicts["extra"] == "attached"
    fake.remove("/sys/kernel/bulkmm/version")
    code, output = run_command(tree, "on", "extra", "--persist", *root)
    assert (code, "extra at load: half" in output) == (0, True)


def test_the_modules_c_knows_the_path(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(EXPANDED)
    program = tmp_path / "a"
    flags = ["-std=gnu11", "-Wall", "-Werror", "-Wno-unused-function", f"-I{tree}"]
    subprocess.run(["gcc", *flags, "-o", program, tmp_path / "a.c"], check=True)
    result = run_program([program], check=True)
    assert result.stdout.splitlines()[-1] == "extra half"


def test_the_range_is_stated_in_one_place() -> None:
    """Its two ends are on one line only where tests compare them, or tools write."""
    may = {"README.md", "docs/limits.md"}
    may |= {f"{part}/kernels.mk" for part in ("module/compat", "bulkmm/control")}
    pages = ("figures", "kernels", "support-matrix", "tour")
    may |= {f"docs/{page}.md" for page in pages}
    kinds = ("*.py", "*.md", "*.mk", "*.sh", "Makefile", "debian")
    command = ["git", "ls-files", *kinds, ":!tests"]
    files = subprocess.check_output(command, cwd=PROJECT, text=True).split()
    assert may < {*files}
    for table in map(requirements.read_table, ("x86_64", "arm64")):
        if table.tested[0] == table.tested[-1]:
            continue
        ends = (re.escape(table.tested[i]) for i in (0, -1))
        pattern = re.compile(".*".join(rf"(?<![\d.]){end}(?!\.?\d)" for end in ends))
        matches = {n for n in files if pattern.search((PROJECT / n).read_text("utf-8"))}
        assert matches <= may
