# SPDX-License-Identifier: GPL-2.0-only
"""The glossary has the abbreviations that the pages take for granted."""

import re

from docpages import BOOK, FENCED, ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
# What every reader of a page on the kernel knows.
COMMON = {
    *(
        "AMD",
        "CI",
        "CPU",
        "EPYC",
        "GB",
        "GCC",
        "GPU",
        "JSON",
        "KB",
        "MB",
        "NULL",
        "RAM",
    ),
    *("COMMAND", "README"),  # in usages, a file
}
# Words of the project, which abbreviations are not, and others.
WORDS = {
    *("slice", "piece", "prealloc", "taint", "against", "path", "served", "known page"),
    *("run", "backend", "stamp", "scenario", "coefficient of variation", "native"),
    # of the kernel and of statistics, where a page does not explain them
    *("PUD", "PTE", "shmem", "HMM", "IOMMU", "cgroup", "kprobe", "max-T"),
    *("visit", "peer", "flavour", "`order8`", "`template-movnti`"),
}
ABBREVIATION = re.compile(r"(?<![\w-])[A-Z]{2,}[a-z]*(?![\w-])")
LEAST = 2  # pages: what one has is explained there
ERRORS = re.compile(r"E[A-Z]+|SIG[A-Z]+")  # of errno.h and signal.h


def test_every_usual_abbreviation_is_there() -> None:
    pages: dict[str, set[str]] = {}
    for page in (ROOT / "README.md", *BOOK):
        prose = re.sub(r"`[^`]*`|\]\([^)]*\)", " ", FENCED.sub("", page.read_text()))
        for word in ABBREVIATION.findall(prose):
            pages.setdefault(word.removesuffix("s"), set()).add(page.name)
    used = {word for word, on in pages.items() if len(on - {GLOSSARY.name}) >= LEAST}
    words = ABBREVIATION.findall(GLOSSARY.read_text())
    terms = {*COMMON, *(word.removesuffix("s") for word in words)}
    assert not {word for word in used - terms if not ERRORS.fullmatch(word)}


def test_every_word_of_the_project_is_there() -> None:
    rows = re.findall(r"^\| ([^|]+) \|", GLOSSARY.read_text(), re.MULTILINE)
    terms = {term.strip() for row in rows for term in re.split("[,;]", row)}
    assert terms >= WORDS
    # nor any that no other page has
    pages = (page.read_text().lower() for page in BOOK if page != GLOSSARY)
    text = "\n".join(pages)
    missing = {term for term in terms if term.split()[0].strip("`").lower() not in text}
    assert not {term for term in missing if "2.21" not in term}  # an example
