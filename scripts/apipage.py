# SPDX-License-Identifier: GPL-2.0-only
"""docs/api.md, the reference of libbulkmm, from the comments in its sources.

Own code: linuxdoc and hawkmoth need all of Sphinx. scripts/manpages.py makes the man
pages of section 3 of this page.
"""

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

WIDTH = 100
PROJECT = Path(__file__).resolve().parents[1]
CORE, LIB = PROJECT / "core", PROJECT / "lib"
PAGE = PROJECT / "docs" / "api.md"
MADE = "<!-- Made by scripts/apipage.py from the sources: change those. -->"
INTRO = (
    "Made by `scripts/apipage.py` from the comments in the sources, as are the man "
    "pages of section 3. How to install, link and use it: [library.md](library.md)."
)
SAFETY = (
    "Thread safety: MT-Safe. Memory and images that threads share are theirs to guard."
)
ENVIRONMENT = "bmm_environment_error"  # its comment names the variables
PROTOTYPE = re.compile(
    r"^(?:int |void |size_t |const char \*)(bmm_\w+)\([^;]*\);", re.MULTILINE
)
ATTRIBUTES = re.compile(r"\s+BMM_ATTR\(.*\);", re.DOTALL)
KERNEL_DOC = re.compile(r"^/\*\*\n(.*?)^ \*/\n", re.MULTILINE | re.DOTALL)
FIRST_COMMENT = re.compile(r"^/\*\n( \* [\w.]+ - .*?)^ \*/\n", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r"(?:(?:struct|enum) )?([\w.]+)(?:\(\))? - (.*)")
PARAMETER = re.compile(r"@(\w+):\s+(.*)")
SECTION = re.compile(r"([A-Z][a-z]+)\. (.*)")


class SourceError(Exception):
    """A comment is missing or cannot be made into a page."""


@dataclass
class Doc:
    """The content of one comment."""

    name: str
    purpose: str
    lines: list[str]  # parameters and paragraphs
    code: str = ""  # what it is about

    def described(self) -> list[str]:
        """Return what it says."""
        return [sentence(prose(self.purpose)), "", *self.lines, ""]

    def mentions(self, names: list[str]) -> bool:
        """Return whether it names any of these functions."""
        said = " ".join([self.purpose, *self.lines])
        return any(f"{name}()" in said for name in names)


def parse(comment: str, code: str = "") -> Doc:
    """Parse a kernel-doc comment, or the first comment of a file."""
    found = [""]
    for line in comment.splitlines():
        text = line.removeprefix(" *").strip()
        if not text or PARAMETER.match(text):
            found.append("")
        found[-1] = f"{found[-1]} {text}".strip()
    title, *rest = filter(None, found)
    start = TITLE.fullmatch(title)
    if not start:
        raise SourceError(f"no 'name - purpose' in the comment that begins: {title}")
    lines = []
    for text in rest:
        if parameter := PARAMETER.fullmatch(text):
            lines.append(f"- `{parameter[1]}`: {prose(parameter[2])}")
        else:
            said = re.sub("^Return: ", "Returns ", prose(text))
            lines += ["", SECTION.sub(r"**\1.** \2", said)]
    return Doc(start[1], start[2], lines, code.expandtabs(8))


def prose(text: str) -> str:
    """Return a paragraph of Markdown: parameters and functions as code."""
    text = re.sub(r"(?<![\w`])([*_<])", r"\\\1", text)
    text = re.sub(r"@(\w+(?:->\w+)?)", r"`\1`", text)
    text = re.sub(r"\b(\w+)\(\)", r"`\1()`", text)
    return re.sub(r"(?<![\w`])(-?BMM_[A-Z_]+|BULKMM_[A-Z_]+)\b", r"`\1`", text)


def sentence(text: str) -> str:
    """Return a phrase as a sentence."""
    return text[0].upper() + text[1:].rstrip(".") + "."


def block(text: str) -> list[str]:
    """Return code."""
    return ["```c", *text.strip("\n").splitlines(), "```", ""]


def declared(header: str) -> list[dict[str, str]]:
    """Return the header's prototypes, those without an empty line between together."""
    groups: list[dict[str, str]] = []
    end = -1
    for found in PROTOTYPE.finditer(header):
        if found.start() != end + 1:
            groups.append({})
        groups[-1][found[1]] = ATTRIBUTES.sub(";", found[0]).expandtabs(8)
        end = found.end()
    return groups


def group(docs: list[Doc], others: list[Doc]) -> Iterator[str]:
    """Return the part for functions grouped in the header."""
    names = [doc.name for doc in docs]
    yield from (f"### {', '.join(f'{name}()' for name in names)}", "")
    yield from block("\n".join(doc.code for doc in docs))
    for doc in docs:
        if len(docs) > 1:
            yield from (f"**`{doc.name}()`**", "")
        yield from doc.described()
    if also := [
        f"`{other.name}()`"
        for other in others
        if other.name not in names
        and (other.mentions(names) or any(d.mentions([other.name]) for d in docs))
    ]:
        yield from (f"See also {', '.join(also)}.", "")


def page() -> Iterator[str]:
    """Return the lines of the page."""
    file = CORE / "bulkmm.h"
    part = LIB / "bulkmm-populate.h"  # that the core does without
    header = file.read_text().replace(f'#include "{part.name}"\n', part.read_text())
    sources = [*sorted(CORE.glob("*.c")), *sorted(LIB.rglob("*.c"))]
    known = {
        doc.name: doc
        for source in sources
        for comment in KERNEL_DOC.findall(source.read_text())
        if (doc := parse(comment))
    }
    groups = []
    for prototypes in declared(header):
        if missing := [name for name in prototypes if name not in known]:
            raise SourceError(f"{file}: no kernel-doc comment for {', '.join(missing)}")
        groups.append([replace(known[n], code=one) for n, one in prototypes.items()])
    functions = [doc for docs in groups for doc in docs]
    overview = FIRST_COMMENT.search(header)
    if not overview:
        raise SourceError(f"{file}: no comment that begins with the file's name")
    yield from ("# API of libbulkmm", "", MADE, "", INTRO, "")
    yield from (*parse(overview[1]).lines, "", "| function | does |", "|---|---|")
    yield from (f"| `{one.name}()` | {prose(one.purpose)} |" for one in functions)
    yield from ("", "## Functions", "")
    for docs in groups:
        yield from group(docs, functions)
    yield from ("## Types", "")
    for comment in KERNEL_DOC.finditer(header):
        code = header[comment.end() : header.index("};\n", comment.end()) + 2]
        doc = parse(comment[1], code)
        yield from (f"### {doc.name}", "", *block(doc.code), *doc.described())
    said = known[ENVIRONMENT].lines
    yield "## Environment"
    yield from (line for line in said if not line.startswith(("- ", "Returns ")))
    yield from ("", "## Threads", "", SAFETY)


def made() -> str:
    """Return the page, wrapped to its width except for tables and code."""
    code, lines = False, [""]
    for line in page():
        code ^= line.startswith("```")
        if code or not line or line.startswith(("|", "```", "#")):
            lines += [line] if line or code or lines[-1] else []
        else:
            more = "  " if line.startswith("- ") else ""
            lines += textwrap.wrap(
                line, WIDTH, subsequent_indent=more, break_on_hyphens=False
            )
    return "\n".join(lines[1:]) + "\n"


def main() -> None:
    """Write the page."""
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    try:
        PAGE.write_text(made(), encoding="utf-8")
    except (OSError, SourceError) as error:
        sys.exit(f"apipage: {error}")


if __name__ == "__main__":
    main()
