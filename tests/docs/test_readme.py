# SPDX-License-Identifier: GPL-2.0-only
"""Each sentence of the README names what would fail if it were not so."""

import re
from importlib import metadata

import pytest
from docpages import FENCED, ROOT

from bulkmm.lab.machine import arch, kernels
from bulkmm.lab.scenario import SCENARIOS

README = (ROOT / "README.md").read_text()
LINES = 120  # a screen or two, and the first result on the first
FIRST_RESULT = 40
FIGURES = re.compile(r"<!-- figures: begin .*?figures: end -->", re.DOTALL)
LIBRARY = "tests/lib/test_lib_docs.py::test_the_commands_work_in_their_order"
NATIVE = "tests/native_kernel/test_kernel.py"
# By how a sentence begins: the test that would fail, or the scenario.
PROOFS = {
    "Initialise, clear and map memory in ranges": (
        f"{NATIVE}::test_the_module_leaves_what_the_kernel_leaves"
    ),
    "Linux does most of these jobs": "pmem-fsdax-100g",
    "bulkmm is one module": "pmem-faults",
    "Operators of persistent memory": "pmem-fsdax-100g",
    "bulkmm doctor says what would attach": (
        "tests/command/test_guest.py::test_doctor_foresees_what_attaches"
    ),
    "Memory-management engineers": f"{NATIVE}::test_a_broken_word_is_found",
    "C programmers": LIBRARY,
    "Status:": "tests/docs/test_readme.py::test_the_status",
    "It is a kernel module that hooks": "hook-faults",
    "memmap and hotplug are on once": "tests/docs/test_readme.py::test_the_paths",
    "It taints the kernel": "pmem-fsdax-100g",
    "The stock kernel's own machine code and": f"{NATIVE}::test_the_command",
    "The gain differs from CPU to CPU": (
        "tests/docs/test_figures.py::test_a_section_for_each_cpu"
    ),
    "There are also Debian packages": (
        "tests/packages/test_packages.py::test_install_rescue_use_purge"
    ),
    "bulkmm on clear": "tests/command/test_guest.py::test_switching",
    "Run these as root on Debian 12": "tests/lab/test_matrix.py::test_the_quick_matrix",
    "All runs are in": "tests/lab/test_matrix.py::test_the_quick_matrix",
    "libbulkmm clears, copies": LIBRARY,
    "Populate makes big pools": LIBRARY,
    "A hook is an ftrace direct trampoline": "hook-faults",
    "memmap: the kernel initialises": f"{NATIVE}::test_a_broken_word_is_found",
    "bulkmm learns their layout": "pmem-faults",
    "Nothing about struct page": "tests/native_kernel/test_fuzz.py",
    "clear zeroes a folio": "clear-populate",
    "vmap finds physically": "vmap-check",
    "hotplug first asks": "hotplug-kmem-32g",
    "That settles a question": "hotplug-kmem-32g",
    "The store instructions": f"{NATIVE}::test_clearing_shares_nothing",
}


def sentences() -> list[str]:
    """Return the README's prose without marks: no code, tables, links, licence."""
    text = FENCED.sub("", FIGURES.sub("", README)).partition("## Read on")[0]
    kept = [x for x in text.splitlines() if not x.startswith(("#", "|"))]
    text = re.sub(r"(?m)^(?:> ?|- |\d\. )", "", "\n".join(kept))
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"[*`]", "", text)
    parts = re.split(r"\n\n|(?<=[.:])\s+(?=[A-Z])|\n(?=[A-Z])|(?<=\.)\s+", text)
    return [" ".join(part.split()) for part in parts if len(part.split()) > 4]


@pytest.mark.parametrize("sentence", sentences(), ids=lambda text: text[:40])
def test_a_sentence_has_its_proof(sentence: str) -> None:
    assert [x for x in PROOFS if sentence.startswith(x)], "say here what proves it"


@pytest.mark.parametrize("proof", sorted(set(PROOFS.values())))
def test_a_proof_is_there(proof: str) -> None:
    file, _, test = proof.partition("::")
    if "/" in file:
        assert f"def {test}" in (ROOT / file).read_text()
    else:
        assert file in {scenario.name for scenario in SCENARIOS}


def test_no_proof_is_of_another_text() -> None:
    said = sentences()
    assert [x for x in PROOFS if not any(s.startswith(x) for s in said)] == []


def test_it_is_short_and_shows_a_result_first() -> None:
    assert len(README.splitlines()) <= LINES
    assert README[: README.index("figures: begin")].count("\n") < FIRST_RESULT


def test_the_status() -> None:
    said = next(text for text in sentences() if text.startswith("Status:"))
    assert f" {metadata.version('bulkmm')}," in said
    assert f" {' and '.join(kernels.SERIES)} kernels on x86-64" in said
    assert f"({arch.ARM64.series[0]} on arm64, " in said


def modes_at_load() -> dict[str, str]:
    """Return what the module's parameters are by default."""
    source = (ROOT / "module" / "main.c").read_text()
    of_path = r'\bMODULE_PARM_DESC\(\s*(\w+),\s*"\1: mode at load.*?\(default: (\w+)\)'
    return dict(re.findall(of_path, source))


def test_the_paths() -> None:
    """As the table has them, and the sentence in the box."""
    rows = re.findall(r"^\| `(\w+)` \| [^|]* \| (on|off) \|", README, re.MULTILINE)
    assert dict(rows) == modes_at_load()
    box = next(text for text in sentences() if text.startswith("memmap and hotplug"))
    on, _, off = box.partition(";")
    for path, mode in rows:
        assert path in (on if mode == "on" else off)
