# SPDX-License-Identifier: GPL-2.0-only
"""The comments in the library's sources, for docs/api.md and the man pages.

Own code: linuxdoc and hawkmoth need all of Sphinx, but the library builds with only
a compiler, Meson and Python.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

PROTOTYPE = re.compile(
    r"^(?:int |void |size_t |const char \*)(bmm_\w+)\([^;]*\);", re.MULTILINE
)
ATTRIBUTES = re.compile(r"\s+BMM_ATTR\(.*\);", re.DOTALL)
KERNEL_DOC = re.compile(r"^/\*\*\n(.*?)^ \*/\n", re.MULTILINE | re.DOTALL)
FIRST_COMMENT = re.compile(r"^/\*\n( \* [\w.]+ - .*?)^ \*/\n", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r"(?:(?:struct|enum) )?([\w.]+)(?:\(\))? - (.*)")
PARAMETER = re.compile(r"@(\w+):\s+(.*)")
SECTION = re.compile(r"([A-Z][a-z]+)\. (.*)")

SAFETY = (
    "Thread safety: MT-Safe. Memory and images that threads share are theirs to guard."
)
ENVIRONMENT = "bmm_environment_error"  # its comment names the variables


class SourceError(Exception):
    """A comment is missing or cannot be made into a page."""


@dataclass
class Doc:
    """The content of one comment."""

    name: str
    purpose: str
    parameters: list[tuple[str, str]] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    returns: str = ""
    code: str = ""  # the definition of a type

    def mentions(self) -> str:
        """Return all text that may name other functions."""
        texts = [self.purpose, *self.body, self.returns]
        return " ".join(texts + [text for _, text in self.parameters])


@dataclass
class Sources:
    """All sources of the pages."""

    groups: list[list[str]]
    prototypes: dict[str, str]
    functions: dict[str, Doc]
    types: list[Doc]
    overview: Doc

    def see_also(self, names: list[str]) -> list[str]:
        """Return other functions that mention these or are mentioned by them."""

        def named(name: str, others: list[str]) -> bool:
            said = self.functions[name].mentions()
            return any(f"{other}()" in said for other in others)

        return [
            other
            for other in self.prototypes
            if other not in names
            and (named(other, names) or any(named(n, [other]) for n in names))
        ]


def paragraphs(comment: str) -> list[str]:
    """Return a comment's paragraphs, each on one line; one per parameter."""
    found = [""]
    for line in comment.splitlines():
        text = line.removeprefix(" *").strip()
        if not text or PARAMETER.match(text):
            found.append("")
        found[-1] = f"{found[-1]} {text}".strip()
    return [text for text in found if text]


def parse(comment: str) -> Doc:
    """Parse a kernel-doc comment, or the first comment of a file."""
    title, *rest = paragraphs(comment)
    start = TITLE.fullmatch(title)
    if not start:
        raise SourceError(f"no 'name - purpose' in the comment that begins: {title}")
    doc = Doc(start[1], start[2])
    for text in rest:
        if parameter := PARAMETER.fullmatch(text):
            doc.parameters.append((parameter[1], parameter[2]))
        elif text.startswith("Return: "):
            doc.returns = text.removeprefix("Return: ")
        else:
            doc.body.append(text)
    return doc


def first_comment(path: Path) -> Doc:
    """Return a file's first comment."""
    found = FIRST_COMMENT.search(path.read_text())
    if not found:
        raise SourceError(f"{path}: no comment that begins with the file's name")
    return parse(found[1])


def whole(header: Path) -> str:
    """Return the text of the header, with the part that the core does without."""
    part = header.parents[1] / "lib" / "bulkmm-populate.h"
    return header.read_text().replace(f'#include "{part.name}"\n', part.read_text())


def declared(header: str) -> tuple[list[list[str]], dict[str, str]]:
    """Return the header's functions in groups, and their prototypes."""
    groups: list[list[str]] = []
    prototypes: dict[str, str] = {}
    end = -1
    for found in PROTOTYPE.finditer(header):
        if found.start() != end + 1:
            groups.append([])
        groups[-1].append(found[1])
        prototypes[found[1]] = ATTRIBUTES.sub(";", found[0]).expandtabs(8)
        end = found.end()
    return groups, prototypes


def documented_types(header: str) -> list[Doc]:
    """Return the header's types that have a comment, with their definitions."""
    found = []
    for comment in KERNEL_DOC.finditer(header):
        doc = parse(comment[1])
        end = header.index("};\n", comment.end()) + 2
        doc.code = header[comment.end() : end].expandtabs(8)
        found.append(doc)
    return found


def read(header: Path, sources: list[Path]) -> Sources:
    """Read the sources of the pages."""
    text = whole(header)
    groups, prototypes = declared(text)
    functions: dict[str, Doc] = {}
    for path in sources:
        for comment in KERNEL_DOC.finditer(path.read_text()):
            doc = parse(comment[1])
            if doc.name in prototypes:
                functions[doc.name] = doc
    if missing := [name for name in prototypes if name not in functions]:
        raise SourceError(f"{header}: no kernel-doc comment for {', '.join(missing)}")
    return Sources(
        groups,
        prototypes,
        functions,
        documented_types(text),
        first_comment(header),
    )
