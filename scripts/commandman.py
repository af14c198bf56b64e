# SPDX-License-Identifier: GPL-2.0-only
"""bulkmm.1 from the parser and docs/command.md, bulkmm.4 from docs/abi.md.

Nothing is said here that is not said there: what --help prints, and the tables
and blocks of the two pages.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from manpages import code, escape, prose, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commandtree import Argument, Command

LICENCE = '.\\" SPDX-License-Identifier: GPL-2.0-only'
MANUAL = "Bulk memory management"
DESCRIPTION = re.compile(r'MODULE_DESCRIPTION\("([^"]*)"\)')
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
BLOCK = re.compile(r"^```\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
BOLD = re.compile(r"(?:`([^`]*)`|\*\*([^*]*)\*\*)")
MEANINGS = ("meaning", "is", "read", "means")  # columns that need no title
RULE = re.compile(r"\|[-:| ]+\|")


def inline(text: str) -> str:
    """Return a paragraph of Markdown for troff: code and bold are bold."""
    parts = BOLD.split(LINK.sub(r"\1", text))
    # the pattern has two groups: text, code or None, bold or None, text, ...
    said = ""
    for i, part in enumerate(parts):
        if part is None:
            continue
        said += bold(part) if i % 3 else escape(part)
    return _guarded(said)


def bold(text: str) -> str:
    """Return words as they are typed."""
    return "\\fB" + quote(text).replace("-", "\\-") + "\\fP"


def _guarded(text: str) -> str:
    """Return text no line of which is a request."""
    return f"\\&{text}" if text[:1] in ".'" else text


def heading(name: str, section: int, version: str) -> list[str]:
    """Return how a page begins."""
    return [LICENCE, f'.TH {name.upper()} {section} "" "bulkmm {version}" "{MANUAL}"']


def item(term: str, text: str) -> str:
    """Return a term in bold and what it means."""
    return f".TP\n{bold(term)}\n{text}"


def synopsis(command: Command) -> str:
    """Return how a command is called, on one line."""
    words = [*command.words, *(one.synopsis() for one in _shown(command))]
    if command.below:
        words.append("COMMAND ...")
    return " ".join(words)


def _shown(command: Command) -> list[Argument]:
    """Return its arguments without --help, options first."""
    return [
        one
        for one in (*command.options, *command.positionals)
        if "--help" not in one.flags
    ]


def described(command: Command) -> list[str]:
    """Return the part of the page that is about one command."""
    lines = [f".SS {escape(' '.join(command.words[1:]))}", code(synopsis(command))]
    about = command.description or f"{command.about[:1].upper()}{command.about[1:]}."
    lines += [".PP", prose(about)]
    for one in _shown(command):
        term = ", ".join(one.flags) + (f" {one.value}" if one.flags else one.value)
        lines.append(item(term.strip(), prose(one.about)))
    return lines


def command_page(top: Command, docs: str, version: str) -> str:
    """Return bulkmm.1."""
    lines = heading("bulkmm", 1, version)
    lines += [".SH NAME", f"bulkmm \\- {escape(_lower(top.description))}"]
    lines += [".SH SYNOPSIS", code(synopsis(top)), ".SH DESCRIPTION"]
    lines += [prose(top.description), ".SH COMMANDS"]
    for command in top.walk():
        if not command.below:
            lines += described(command)
    for title in ("Exit codes", "Environment"):
        name = {"Exit codes": "EXIT STATUS"}.get(title, title.upper())
        lines += [f".SH {name}", *markdown(section(docs, title))]
    blocks = [found[1] for found in BLOCK.finditer(docs)]
    lines.append(".SH EXAMPLES")
    lines += [part for block in blocks for part in (".PP", code(block))]
    lines += [".SH SEE ALSO", ".BR bulkmm (3),\n.BR bulkmm (4)"]
    return plain(lines)


def plain(lines: list[str]) -> str:
    """Return a page in ASCII: troff has names for everything else."""
    text = "\n".join(lines) + "\n"
    return "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in text)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip(".")


def module_page(docs: str, source: str, version: str) -> str:
    """Return bulkmm.4."""
    found = DESCRIPTION.search(source)
    if not found:
        raise ValueError("the module's source has no description")
    intro, *sections = re.split(r"^## ", docs, flags=re.MULTILINE)
    lines = heading("bulkmm", 4, version)
    lines += [".SH NAME", f"bulkmm \\- {escape(_lower(found[1]))}"]
    lines += [".SH SYNOPSIS", code("modprobe bulkmm [PARAMETER=VALUE]...")]
    lines += [".SH DESCRIPTION", *markdown(intro.partition("\n")[2])]
    for text in sections:
        title, _, body = text.partition("\n")
        lines.append(f".SH {escape(title.replace('`', '')).upper()}")
        lines += markdown(body)
    lines += [".SH SEE ALSO", ".BR bulkmm (1),\n.BR bulkmm (3)"]
    return plain(lines)


def section(docs: str, title: str) -> str:
    """Return the text of a section of a page."""
    _, found, rest = docs.partition(f"\n## {title}\n")
    if not found:
        raise ValueError(f"the page has no section {title}")
    return rest.partition("\n## ")[0]


def markdown(text: str) -> Iterator[str]:
    """Return paragraphs, tables and blocks for troff."""
    for part in re.split(r"\n\n+", text.strip("\n")):
        if part.startswith("```"):
            yield from (".PP", code(part.strip("`\n")))
        elif part.startswith("|"):
            yield from table(part)
        elif part:
            yield from (".PP", inline(" ".join(part.split())))


def table(text: str) -> Iterator[str]:
    """Return a table as a list: the first cell, and what the others say of it."""
    rows = [_cells(line) for line in text.splitlines() if not RULE.fullmatch(line)]
    titles = rows[0]
    for row in rows[1:]:
        said = [
            cell if title in MEANINGS else f"{title}: {cell}"
            for title, cell in zip(titles[1:], row[1:], strict=True)
            if cell
        ]
        yield f".TP\n{inline(row[0])}\n{inline('; '.join(said)) or chr(92) + '&'}"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
