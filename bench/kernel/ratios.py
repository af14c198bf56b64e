# SPDX-License-Identifier: GPL-2.0-only
"""The ratios of this CPU, measured for "bulkmm worth --measure"."""

import sys
from itertools import chain

from bench.amount import FULL_PROCESSES
from bench.kernel import find, measure
from bench.kernel import run as native
from bulkmm.shell.errors import BulkmmError
from bulkmm.shell.progress import Progress
from bulkmm.shell.size import name_size
from bulkmm.worth import gain
from bulkmm.worth.gain import Figures


def measure_ratios(release: str) -> Figures:
    """Return figures that are measured now, as by "bench kernel --quick"."""
    sys.stderr.write("bulkmm: measuring the ratios on this CPU\n")
    size = name_size(measure.SUBJECTS["memmap"].quick.size)
    names = sorted(chain.from_iterable(gain.name_scenarios(size).values()))
    often = 1, FULL_PROCESSES  # fewer processes prove no ratio
    progress = Progress()
    try:
        with find.find_files(release, None, progress) as (image, module):
            job = measure.Job(image, module, "host", *often, quick=True, only=names)
            document = measure.measure_kernel(job, native.SUBJECTS, progress)
    except BulkmmError as error:
        raise BulkmmError(f"--measure: {error}") from error
    for check in document.failed:
        raise BulkmmError(f"--measure: check failed: {check.name}: {check.detail}")
    return Figures("measured just now", gain.extract_gains(document))
