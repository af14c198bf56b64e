# SPDX-License-Identifier: GPL-2.0-only
"""Files and symbols that the pages name in backticks are in the tree.

What is in backticks is taken at its word where its form says what it is:

- ``module/hook.c: bmm_hook_attach()``: the file is there, and defines each of the
  names behind the colon (separated by commas);
- ``module/hook.c``, ``hook.c``, ``core/``, ``tests/core/test_*.py``: a file or folder;
- ``memmap/hits``: a file in sysfs of a path of the module;
- ``bmm_learn()``: defined in the tree; ``vmap()``, of others: spoken of in it;
- ``BMM_FAULTS``, ``folio_zero_user``, ``--quick``: found in a source;
- ``make deb``, ``bulkmm lab …``: a goal of the Makefile, a command.

``…`` and ``*`` stand for anything. Whatever has another form claims nothing.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING

import pytest
from docpages import PAGES, ROOT, name, source, spans, tracked

from bulkmm import cli
from bulkmm.control import needs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CODE = ("c", "h", "S", "py", "sh", "mk", "toml", "build", "map", "css", "html", "ini")
FILE = rf"[\w.*…-]+\.(?:{'|'.join(CODE)}|md|txt)"
PLACE = re.compile(rf"({FILE}|[\w.*…-]+/[\w./*…-]*)")
DEFINES = re.compile(rf"({FILE}|[\w.-]+/[\w./-]+): (\w+(?:\(\))?(?:, \w+(?:\(\))?)*)")
CALL = re.compile(r"([\w*…]*\w[\w*…]*)\([\w, *]*\)")
OPTION = re.compile(r"(--[a-z][\w-]+)\b.*")
WORD = re.compile(r"((?=\w*_)[A-Za-z_]\w{3,})")
COMMAND = re.compile(r"(make|bulkmm) ([a-z][a-z-]*)(?: .*)?")
MADE = ("build", "out", ".venv")  # not in git
OURS = ("bmm_", "BMM_", "BULKMM_", "bulkmm_")
SYSFS = {path.name for path in needs.read("aarch64").paths}
# In the kernel's source, or made at run time.
FOREIGN_FILES = {"lib/test_vmalloc.c", "lib/test_hmm.c"}
# Of the kernel, the C library or a firmware, and in no file of ours.
FOREIGN = {
    "CONFIG_DEBUG_PAGE_REF",
    "FTRACE_OPS_FL_IPMODIFY",
    "clear_pages",
    "copy_hugetlb_page_range",
    "process_madvise",
    "vmap_pages_range",
}
VARIABLE = re.compile(r"_[A-Z]+_|_[A-Z]+$")  # in a name of small letters


@cache
def folders() -> set[str]:
    """Return every folder that holds a file."""
    above = {up for file in tracked() for up in PurePath(file).parents}
    return {str(folder) for folder in above} - {"."}


@cache
def vocabulary() -> set[str]:
    """Return every word of all sources: whatever is no page. An option is one."""
    text = "\n".join(
        source(file)
        for file in tracked()
        if not file.endswith(".md") and not file.startswith("tests/docs/")
    )
    return {*re.findall(r"\w+", text), *re.findall(r"(?<![\w-])--[\w-]+", text)}


def pattern(text: str) -> str:
    """Return what fnmatch is given: an ellipsis is as good as an asterisk."""
    return text.replace("…", "*")


def is_there(place: str) -> bool:
    """Tell if a file or folder is there; part of a path will do."""
    wanted = pattern(place.rstrip("/"))
    every = folders() if place.endswith("/") else {*tracked(), *folders()}
    return any(
        fnmatchcase(one, wanted) or fnmatchcase(one, f"*/{wanted}") for one in every
    )


def defined(symbol: str, text: str) -> bool:
    """Tell if a text defines a symbol: C, assembler, Python, shell or make."""
    if symbol not in text:
        return False
    word = re.escape(symbol)
    named = (
        rf"^\s*(?:async )?(?:def|class) {word}\b",
        rf"^#\s*define {word}\b",
        rf"^\s*(?:struct|enum|union) {word} \{{",
        rf"^(?:[\w*]+ )*\*?{word}(?:\[.*?\])* *:?\??:?=",
        rf"^\s*{word}\b[^;()]*[,=]",  # a field, an enumerator, a table's row
        rf"^\}} {word}\b.* = \{{",
        rf"^{word}\(\) \{{",
        rf"^{word}:",
        rf"^\.macro {word}\b",
        rf"^[A-Z_]+[ (]{word}[ ,)]",  # BMM_TRAMPOLINE memmap, TUNABLE(radius, 2)
        rf"^(?:static |extern )?[\w *]+[ *]{word}(?:\[.*?\])?;",
    )
    if any(re.search(one, text, re.MULTILINE) for one in named):
        return True
    for found in re.finditer(rf"^(?:[A-Za-z_][^\n(]*)?\b{word}\(", text, re.MULTILINE):
        ends = re.search(r"[;{]", text[found.end() :])
        if ends and ends[0] == "{":
            return True
    return False


def spoken_of(word: str) -> bool:
    """Tell if a source has a word; an ellipsis or asterisk in it is any letters."""
    wanted = pattern(word)
    if "*" not in wanted:
        return wanted in vocabulary()
    return any(fnmatchcase(one, wanted) for one in vocabulary())


def wrong_definitions(file: str, names: str) -> str:
    """Return what a file does not define, "" if all is there."""
    if file not in tracked():
        return f"no file {file}"
    gone = [
        one.removesuffix("()")
        for one in names.split(", ")
        if not defined(one.removesuffix("()"), source(file))
    ]
    return f"{file} does not define {', '.join(gone)}" if gone else ""


def wrong_place(place: str) -> str:
    """Return what is wrong with a path."""
    first, _, rest = place.partition("/")
    if place in FOREIGN_FILES or first in MADE or is_there(place):
        return ""
    if first in SYSFS:
        last = rest.rpartition("/")[2]
        known = last.isupper() or spoken_of(last)
        return "" if known else f"no file {place} in sysfs"
    top = {file.partition("/")[0] for file in tracked()}
    return f"no file {place}" if first in top or "/" not in place else ""


def wrong_call(symbol: str) -> str:
    """Return what is wrong with the name of a function."""
    if symbol in FOREIGN:
        return ""
    if symbol.startswith(OURS) and not set(symbol) & {"…", "*"}:
        found = any(defined(symbol, source(file)) for file in tracked() if "." in file)
        return "" if found else f"nothing defines {symbol}()"
    return "" if spoken_of(symbol) else f"no source speaks of {symbol}()"


def wrong_word(word: str) -> str:
    """Return what is wrong with any other name."""
    stands_for_many = not word.isupper() and VARIABLE.search(word)
    if word in FOREIGN or stands_for_many or spoken_of(word):
        return ""
    return f"no source has {word}"


def wrong_option(option: str) -> str:
    """Return what is wrong with an option."""
    return "" if spoken_of(option) else f"no option {option}"


def wrong_command(program: str, word: str) -> str:
    """Return what is wrong with the beginning of a command."""
    makefile = (ROOT / "Makefile").read_text()
    if program == "make":
        known = bool(re.search(rf"^{word}:", makefile, re.MULTILINE))
    else:
        known = any(word in part for part in cli.PARTS.values())
    return "" if known else f"no command {program} {word}"


# The first form that fits counts.
FORMS: tuple[tuple[re.Pattern[str], Callable[..., str]], ...] = (
    (DEFINES, wrong_definitions),
    (re.compile(r"/.*"), lambda: ""),  # a place in the system
    (PLACE, wrong_place),
    (CALL, wrong_call),
    (OPTION, wrong_option),
    (WORD, wrong_word),
    (COMMAND, wrong_command),
)


def wrong(span: str) -> str:
    """Return what a claim has wrong, "" if it holds or is none."""
    for form, judge in FORMS:
        if found := form.fullmatch(span):
            return judge(*found.groups())
    return ""


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_what_a_page_names_is_there(page: Path) -> None:
    said = {span: wrong(span) for span in spans(page)}
    assert {span: what for span, what in said.items() if what} == {}


@pytest.mark.parametrize(
    "span",
    [
        "module/hook.c: bmm_hook_attach(), bmm_hook_why()",
        "module/trampolines.S: memmap",
        "core/backend.c: bmm_backend_at()",
        "bulkmm/lab/scenario.py: SCENARIOS, Scenario",
        "lab/guest/report.sh: report()",
        "hook.c",
        "compat/",
        "tests/core/test_*.py",
        "memmap/hits",
        "bmm_turn_…()",
        "vmap_range_noflush()",
        "--init-on-alloc 0",
        "make deb",
        "bulkmm lab run SCENARIO",
    ],
)
def test_what_holds(span: str) -> None:
    assert wrong(span) == ""


@pytest.mark.parametrize(
    "span",
    [
        "module/hook.c: bmm_hook_gone()",
        "module/path.c: bmm_hook_attach()",  # called there, not defined
        "module/none.c: bmm_hook_attach()",
        "none.c",
        "core/none/",
        "module/none",
        "memmap/none_such",
        "bmm_none()",
        "bmm_none_…()",
        "no_such_function()",
        "NO_SUCH_WORD",
        "--no-such",
        "make none",
        "bulkmm none",
    ],
)
def test_what_does_not_hold_would_be_found(span: str) -> None:
    assert wrong(span)
