# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios of a kernel's own code, in words."""

import re
from pathlib import Path

import made
import pytest

from bench.kernel import run, scenarios
from bulkmm.report import headlines, page
from bulkmm.results import job_words, stats
from bulkmm.results.model import Document

RESULTS = sorted((Path(__file__).parents[2] / "results").glob("*/kernel-*.json"))
NAME = re.compile(r"\b[a-z]+-(?:\d+[kmg]|1page)")


def describe(name: str) -> str:
    result = stats.summarise_arm(name, "stock", "ns", made.GIB, [1.0, 2.0])
    return job_words.describe_job(result)


def test_every_scenario_has_words_of_its_own() -> None:
    names = [name for one in run.SUBJECTS for name in scenarios.list_scenarios(one)]
    words = {describe(name): name for name in names}
    assert len(words) == len(names)
    for text, name in words.items():
        assert not NAME.search(text), (name, text)
        assert not re.search(r"order\d|  |, $|\bthp\b", text), (name, text)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("thp-64k", "touching pages of 64 KiB"),
        ("hugetlb-2m-populate", "populating hugetlb pages of 2 MiB"),
        ("thp-2m-then-random", "touching pages of 2 MiB, then read at random"),
        ("copy-2m-last", "copying pages of 2 MiB, the page in use is the last"),
        ("vmap-1page", "mapping a single page by vmap()"),
        ("vmap-100m-order8-adjacent", "in blocks of 1 MiB, one behind the other"),
        ("vmalloc-100m-huge", "vmalloc_huge() of 100 MiB"),
        ("pmem-devdax-16g-align-1g-map-mem", "aligned to 1 GiB, struct pages in RAM"),
        ("hotplug-contiguous", "hotplug-contiguous"),
    ],
)
def test_what_they_say(name: str, words: str) -> None:
    assert describe(name).endswith(words)


def test_losses_are_told_in_words() -> None:
    texts = [headlines.describe_losses([Document.read(file)]) for file in RESULTS]
    assert any("mapping a single page by vmap() 0." in text for text in texts)
    assert not [text for text in texts if NAME.search(text)]


def test_the_page_explains_the_names() -> None:
    html = page.render_html([made.kernel()], ["a"], "t")
    entry = "<dt>thp-2m-populate</dt><dd>populating pages of 2 MiB</dd>"
    assert entry in html
    assert "in words</summary>" not in page.render_html([made.bench()], ["a"], "t")
