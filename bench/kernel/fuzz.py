# SPDX-License-Identifier: GPL-2.0-only
"""Generated cases: the module's result against that of the kernel's own code.

The corpus (``bench/kernel/corpus``) runs first. A case is one line, which is all that
is needed to run it again.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.kernel import measure
from bulkmm.shell.errors import UsageError
from bulkmm.shell.progress import Progress
from bulkmm.shell.size import GIB

if TYPE_CHECKING:  # numpy takes long to load
    from bench.kernel.process import Prepared

CORPUS = Path(__file__).with_name("corpus")
# in which cases are generated
SIZES = {"memmap": 16 * GIB, "vmap": GIB}


@dataclass(frozen=True)
class FuzzResult:
    """The outcome of the cases."""

    subject: str
    kernel: str
    cases: int
    corpus_cases: int  # of the corpus
    served_cases: int  # by the module; it fell back in the others
    differs: str = ""  # the differing case, if any

    def __str__(self) -> str:
        """Return a one-line summary."""
        how = "one differs" if self.differs else "none differs"
        return (
            f"{self.subject}, {self.kernel}: {self.cases} cases "
            f"({self.corpus_cases} kept), "
            f"{self.served_cases} of them served by the module: {how}"
        )


def fuzz_kernel(
    job: measure.Job, subject: str, seconds: int, progress: Progress
) -> FuzzResult:
    """Prepare a kernel and compare corpus and generated cases, or one given case."""
    from bench.kernel import process

    words = make_arguments(job, subject, seconds)
    with process.prepare_kernel(
        job.kernel, job.module, job.mitigations, progress
    ) as ready:
        return compare_cases(ready, words)


def make_arguments(job: measure.Job, subject: str, seconds: int) -> list[str]:
    """Return the harness's arguments."""
    if subject not in SIZES:
        raise UsageError(
            f"no fuzzer for {subject}; there is one for {', '.join(SIZES)}"
        )
    words = measure.make_arguments(job, subject, job.size or SIZES[subject])
    words.append(f"--fuzz={seconds}")
    if job.case is None and (CORPUS / subject).is_file():
        words.append(f"--corpus={CORPUS / subject}")
    return words


def compare_cases(ready: "Prepared", words: list[str]) -> FuzzResult:
    """Compare cases of a prepared kernel."""
    events = measure.read_events(ready, words, "")
    summary = next(event for event in events if event["event"] == "fuzz")
    differs = next(
        (event["case"] for event in events if event["event"] == "differs"), ""
    )
    counts = summary["cases"], summary["kept"], summary["served"]
    return FuzzResult(words[0], ready.release, *counts, differs)
