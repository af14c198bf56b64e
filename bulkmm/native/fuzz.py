# SPDX-License-Identifier: GPL-2.0-only
"""Generated cases: the module's result against that of the kernel's own code.

The corpus (``native/corpus``) runs first. A case is one line, which is all that
is needed to run it again.
"""

from dataclasses import dataclass
from pathlib import Path

from bulkmm.errors import UsageError
from bulkmm.lab.progress import Progress
from bulkmm.native import measure, process
from bulkmm.size import GIB

CORPUS = Path(__file__).parents[2] / "native" / "corpus"
# in which cases are generated
SIZES = {"memmap": 16 * GIB, "vmap": GIB}


@dataclass(frozen=True)
class Found:
    """The outcome of the cases."""

    subject: str
    kernel: str
    cases: int
    kept: int  # of the corpus
    served: int  # by the module; it fell back in the others
    differs: str = ""  # the differing case, if any

    def __str__(self) -> str:
        """Return a one-line summary."""
        how = "one differs" if self.differs else "none differs"
        return (
            f"{self.subject}, {self.kernel}: {self.cases} cases ({self.kept} kept), "
            f"{self.served} of them served by the module: {how}"
        )


def run(job: measure.Job, subject: str, seconds: int, progress: Progress) -> Found:
    """Prepare a kernel and compare corpus and generated cases, or one given case."""
    words = requested(job, subject, seconds)
    with process.prepared(job.kernel, job.module, job.mitigations, progress) as ready:
        return compared(ready, words)


def requested(job: measure.Job, subject: str, seconds: int) -> list[str]:
    """Return the harness's arguments."""
    if subject not in SIZES:
        raise UsageError(
            f"no fuzzer for {subject}; there is one for {', '.join(SIZES)}"
        )
    words = measure.words(job, subject, job.size or SIZES[subject])
    words.append(f"--fuzz={seconds}")
    if job.case is None and (CORPUS / subject).is_file():
        words.append(f"--corpus={CORPUS / subject}")
    return words


def compared(ready: process.Prepared, words: list[str]) -> Found:
    """Compare cases of a prepared kernel."""
    said = measure.events(ready, words, "")
    done = next(one for one in said if one["event"] == "fuzz")
    differs = next((one["case"] for one in said if one["event"] == "differs"), "")
    counts = {name: done[name] for name in ("cases", "kept", "served")}
    return Found(words[0], ready.release, **counts, differs=differs)
