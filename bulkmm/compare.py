# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm compare``: tell whether anything got slower between sets of results."""

import re

from bulkmm import options
from bulkmm.errors import UsageError

THRESHOLD = "5%"


def add_parser(sub: options.Subparsers) -> None:
    """Add ``compare`` to the parser of the whole command."""
    compare = options.add(
        sub,
        "compare",
        "tell if the results of one build are slower than those of another",
        "Compare two builds by several results of each. A file is one sample: run the "
        "bench at least four times with each build, in turn. A variant is slower if "
        "the whole 95 % interval of the ratio (of fewer than six files: the range) "
        "lies beyond the threshold, and a permutation test of the files, corrected "
        "for all that is compared, says that it is not chance.",
        run="bulkmm.comparison:run_compare",
        example="bulkmm compare --threshold 5% old-*.json -- new-*.json",
    )
    compare.usage = "%(prog)s [-h] [--threshold T] [--json] A.json... -- B.json..."
    table = """
        files:RESULT.json+  read results of one build, then -- and those of the other;
            two results need no dashes between them
        --threshold T  allow so much more time, as 5%% or 0.05 (default: 5%%)
        --json  print the comparison as JSON, and errors too
        """
    # argparse drops the first "--"
    options.take(compare, table, threshold=THRESHOLD, keeps_dashes=True)


def parse_threshold(text: str) -> float:
    """Return ``5%`` or ``0.05`` as a fraction."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+) ?(%?)", text.strip())
    if found:
        value = float(found[1]) / (100 if found[2] else 1)
        # A bare 5 would be 500 %: more likely a forgotten percent sign.
        if value < 1 or (value == 1 and found[2]):
            return value
    accepted = "give 0% to 100%, or a fraction below 1, as in 5% or 0.05"
    raise UsageError(f"bad threshold {text!r}: {accepted}")
