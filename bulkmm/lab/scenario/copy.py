# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios of path copy."""

from bulkmm.lab.scenario.declaration import LACKING, Scenario

SCENARIOS = (
    Scenario(
        "copy-hugetlb",
        "hugetlb pages copied after a fork, by a write to a private mapping of a "
        "file, as pinned memory, by UFFDIO_COPY; and pages that are broken",
        "copies and sources against a model, hits counted; a broken page has the "
        "same consequences with the path on as without it; a wrong word must be seen",
        family="copy",
        work="families.copy:Work",
        path="copy",
        measures=False,
        takes=("seed", "break_one_word"),
        quick=("",),
        debug={"patched": ("",)},
        lacking_debug=LACKING,  # io_uring
        since="6.12",  # 6.1 copies without regard to machine checks
        x86_only="the path is",
        seconds=40,
        memory=1024,
    ),
)
