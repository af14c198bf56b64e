# SPDX-License-Identifier: GPL-2.0-only
"""Man pages of section 3, from the comments in the library's sources.

Functions without a blank line between them in the header share a page named after
the first; the others are links to it. The overview is the header's first comment,
with its types and the environment variables.

Own code: linuxdoc and hawkmoth need all of Sphinx, but the library builds with only
a compiler, Meson and Python.
"""

import argparse
import re
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

OVERVIEW = "bulkmm"
ENVIRONMENT = "bmm_environment_error"  # its comment names the variables
BUILD = "cc program.c $(pkg-config --cflags --libs bulkmm)"
SAFETY = (
    "Thread safety: MT-Safe. Memory and images that threads share are theirs to guard."
)

PROTOTYPE = re.compile(
    r"^(?:int |void |size_t |const char \*)(bmm_\w+)\([^;]*\);", re.MULTILINE
)
ATTRIBUTES = re.compile(r"\s+BMM_ATTR\(.*\);", re.DOTALL)
KERNEL_DOC = re.compile(r"^/\*\*\n(.*?)^ \*/\n", re.MULTILINE | re.DOTALL)
FIRST_COMMENT = re.compile(r"^/\*\n( \* [\w.]+ - .*?)^ \*/\n", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r"(?:(?:struct|enum) )?([\w.]+)(?:\(\))? - (.*)")
PARAMETER = re.compile(r"@(\w+):\s+(.*)")
SECTION = re.compile(r"([A-Z][a-z]+)\. (.*)")
FAILURE = re.compile(r"0, or -(BMM_E\w+) (.*)")


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
    text = header.read_text()
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


def quote(text: str) -> str:
    """Return text with troff's special characters escaped."""
    for character, name in (
        ("\\", "rs"),
        ("'", "aq"),
        ("`", "ga"),
        ("^", "ha"),
        ("~", "ti"),
    ):
        text = text.replace(character, f"\\({name}")
    return text


def escape(text: str) -> str:
    """Return text that troff prints literally; hyphens as hyphen or minus."""
    return re.sub(r"(?<!\w)-|-(?!\w)", r"\\-", quote(text))


def prose(text: str) -> str:
    """Return a paragraph: parameters in italics, functions in bold, wrapped."""
    text = escape(text)
    text = re.sub(r"@(\w+)", r"\\fI\1\\fP", text)
    text = re.sub(r"\b(\w+)\(\)", r"\\fB\\%\1\\fP()", text)
    lines = textwrap.wrap(text, 78, break_long_words=False, break_on_hyphens=False)
    return "\n".join(("\\&" if line[0] in ".'" else "") + line for line in lines)


def code(text: str) -> str:
    """Return lines that are not filled."""
    lines = [quote(line).replace("-", "\\-") for line in text.splitlines()]
    return ".nf\n" + "\n".join(f"\\fB{s}\\fP" if s else "" for s in lines) + "\n.fi"


def sentence(text: str) -> str:
    """Return a phrase as a sentence."""
    return text[0].upper() + text[1:].rstrip(".") + "."


def items(pairs: list[tuple[str, str]], font: str) -> list[str]:
    """Return a list of terms and their meanings."""
    return [f".TP\n\\f{font}{escape(term)}\\fP\n{prose(text)}" for term, text in pairs]


def heading(name: str, version: str) -> list[str]:
    """Return the head of a page."""
    return [
        '.\\" SPDX-License-Identifier: GPL-2.0-only OR MIT',
        f'.TH {name.upper()} 3 "" "bulkmm {version}" "Bulk memory management"',
    ]


def synopsis(prototypes: list[str]) -> list[str]:
    """Return the SYNOPSIS section."""
    lines = [".SH SYNOPSIS", code("#include <bulkmm.h>")]
    lines += [part for text in prototypes for part in (".PP", code(text))]
    return [*lines, ".PP", code(BUILD)]


def references(names: list[str]) -> list[str]:
    """Return the SEE ALSO section."""
    return [".SH SEE ALSO", ",\n".join(f".BR \\%{name} (3)" for name in names)]


def described(doc: Doc, *, alone: bool) -> list[str]:
    """Return the description of a function, with a heading if the page has several."""
    lines = [] if alone else [f".SS {doc.name}()"]
    lines += [prose(sentence(doc.purpose)), *items(doc.parameters, "I")]
    return lines + [f".PP\n{prose(text)}" for text in doc.body]


def returned(doc: Doc) -> list[tuple[str, str]]:
    """Return what a function returns, as an item of a list."""
    if not doc.returns:
        return []
    failure = FAILURE.fullmatch(doc.returns)
    if not failure and "-BMM_E" in doc.returns:
        raise SourceError(f"{doc.name}: not '0, or -BMM_E... when': {doc.returns}")
    text = "0, or a negative error number." if failure else sentence(doc.returns)
    return [(f"{doc.name}()", text)]


def failures(doc: Doc) -> list[tuple[str, str]]:
    """Return the errors of a function, as items of a list."""
    failure = FAILURE.fullmatch(doc.returns)
    return [(f"{failure[1]}, {doc.name}()", sentence(failure[2]))] if failure else []


def function_page(sources: Sources, names: list[str], version: str) -> str:
    """Return the page of a group of functions."""
    docs = [sources.functions[name] for name in names]
    purposes = "; ".join(doc.purpose.replace("@", "") for doc in docs)
    lines = heading(names[0], version)
    lines += [".SH NAME", f"{', '.join(names)} \\- {escape(purposes)}"]
    lines += synopsis([sources.prototypes[name] for name in names])
    lines.append(".SH DESCRIPTION")
    for doc in docs:
        lines += described(doc, alone=len(docs) == 1)
    for title, list_of in ("RETURN VALUE", returned), ("ERRORS", failures):
        if entries := [entry for doc in docs for entry in list_of(doc)]:
            lines += [f".SH {title}", *items(entries, "B")]
    lines += [".SH ATTRIBUTES", prose(SAFETY)]
    lines += references([*sources.see_also(names), OVERVIEW])
    return "\n".join(lines) + "\n"


def overview_page(sources: Sources, version: str) -> str:
    """Return the page of the library."""
    about = sources.overview
    lines = heading(OVERVIEW, version)
    lines += [".SH NAME", f"{OVERVIEW} \\- {escape(about.purpose)}", *synopsis([])]
    lines.append(".SH DESCRIPTION")
    for text in about.body:
        section = SECTION.fullmatch(text)
        lines.append(f".SH {section[1].upper()}" if section else ".PP")
        lines.append(prose(section[2] if section else text))
    purposes = [(f"{n}()", sentence(d.purpose)) for n, d in ordered(sources)]
    lines += [".SH FUNCTIONS", *items(purposes, "B"), ".SH TYPES"]
    for doc in sources.types:
        lines += [f".SS {doc.name}", prose(sentence(doc.purpose)), ".PP"]
        lines += [code(doc.code), *items(doc.parameters, "I")]
        lines += [f".PP\n{prose(text)}" for text in doc.body]
    lines.append(".SH ENVIRONMENT")
    lines += [f".PP\n{prose(text)}" for text in sources.functions[ENVIRONMENT].body]
    lines += [".SH ATTRIBUTES", prose(SAFETY)]
    lines += references(list(sources.prototypes))
    return "\n".join(lines) + "\n"


def ordered(sources: Sources) -> list[tuple[str, Doc]]:
    """Return the functions in the header's order."""
    return [(name, sources.functions[name]) for name in sources.prototypes]


def pages(sources: Sources, version: str) -> dict[str, str]:
    """Return all pages by file name."""
    made = {f"{OVERVIEW}.3": overview_page(sources, version)}
    for names in sources.groups:
        made[f"{names[0]}.3"] = function_page(sources, names, version)
        made |= {f"{name}.3": f".so man3/{names[0]}.3\n" for name in names[1:]}
    return made


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("header", type=Path)
    parser.add_argument("sources", type=Path, nargs="*")
    parser.add_argument("--list", action="store_true", help="only name the files")
    parser.add_argument("--version", default="")
    parser.add_argument("--out", type=Path, default=Path())
    return parser.parse_args()


def main() -> None:
    """Write the pages, or print their names."""
    args = arguments()
    try:
        if args.list:
            names = [name for g in declared(args.header.read_text())[0] for name in g]
            print("\n".join(f"{name}.3" for name in [OVERVIEW, *names]))
            return
        sources = read(args.header, args.sources)
        for name, text in pages(sources, args.version).items():
            (args.out / name).write_text(text)
    except (OSError, SourceError) as error:
        sys.exit(f"manpages: {error}")


if __name__ == "__main__":
    main()
