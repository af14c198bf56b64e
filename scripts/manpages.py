# SPDX-License-Identifier: GPL-2.0-only
"""Man pages of section 3, from the comments in libbulkmm's sources.

One for the prototypes that stand together in the header: all but the first are links
to its page. The overview has the header's first comment, its types and the
environment variables. Own code: linuxdoc and hawkmoth need all of Sphinx.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import roff

BUILD = "cc program.c $(pkg-config --cflags --libs bulkmm)"
HEAD = (
    '.\\" SPDX-License-Identifier: GPL-2.0-only OR MIT\n'
    '.TH {name} 3 "" "bulkmm {version}" "Bulk memory management"\n'
)
OVERVIEW = "bulkmm"
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

    def described(self) -> list[str]:
        """Return what it says."""
        return [make_sentence(to_markdown(self.purpose)), "", *self.lines, ""]

    def mentions(self, names: list[str]) -> bool:
        """Return whether it names any of these functions."""
        words = " ".join([self.purpose, *self.lines])
        return any(f"{name}()" in words for name in names)


def parse_comment(comment: str) -> Doc:
    """Parse a kernel-doc comment, or the first comment of a file."""
    paragraphs = [""]
    for line in comment.splitlines():
        text = line.removeprefix(" *").strip()
        if not text or PARAMETER.match(text):
            paragraphs.append("")
        paragraphs[-1] = f"{paragraphs[-1]} {text}".strip()
    title, *rest = filter(None, paragraphs)
    start = TITLE.fullmatch(title)
    if not start:
        raise SourceError(f"no 'name - purpose' in the comment that begins: {title}")
    lines = []
    for text in rest:
        if parameter := PARAMETER.fullmatch(text):
            lines.append(f"- `{parameter[1]}`: {to_markdown(parameter[2])}")
        else:
            paragraph = re.sub("^Return: ", "Returns ", to_markdown(text))
            lines += ["", SECTION.sub(r"**\1.** \2", paragraph)]
    return Doc(start[1], start[2], lines)


def to_markdown(text: str) -> str:
    """Return a paragraph of Markdown: parameters and functions as code."""
    text = re.sub(r"(?<![\w`])([*_<])", r"\\\1", text)
    text = re.sub(r"@(\w+(?:->\w+)?)", r"`\1`", text)
    text = re.sub(r"\b(\w+)\(\)", r"`\1()`", text)
    return re.sub(r"(?<![\w`])(-?BMM_[A-Z_]+|BULKMM_[A-Z_]+)\b", r"`\1`", text)


def make_sentence(text: str) -> str:
    """Return a phrase as a sentence."""
    return text[0].upper() + text[1:].rstrip(".") + "."


def group_prototypes(header: str) -> list[dict[str, str]]:
    """Return the header's prototypes, those without an empty line between together."""
    groups: list[dict[str, str]] = []
    end = -1
    for match in PROTOTYPE.finditer(header):
        if match.start() != end + 1:
            groups.append({})
        groups[-1][match[1]] = ATTRIBUTES.sub(";", match[0]).expandtabs(8)
        end = match.end()
    return groups


def read_header(sources: list[Path]) -> str:
    """Return the first header, with the others where it includes them."""
    first, *parts = [source for source in sources if source.suffix == ".h"]
    text = first.read_text("utf-8")
    for part in parts:
        text = text.replace(f'#include "{part.name}"\n', part.read_text("utf-8"))
    return text


def read_comments(sources: list[Path]) -> dict[str, Doc]:
    """Return what the C files say of functions, by name."""
    files = [source for source in sources if source.suffix == ".c"]
    comments = [
        c for file in files for c in KERNEL_DOC.findall(file.read_text("utf-8"))
    ]
    return {doc.name: doc for doc in map(parse_comment, comments)}


def make_page(name: str, purpose: str, code: str, **parts: str) -> str:
    """Return a page in Markdown; titles of sections have _ for a space."""
    synopsis = f"```\n#include <bulkmm.h>\n```\n{code}```\n{BUILD}\n```"
    parts = {"NAME": f"{name} - {purpose}", "SYNOPSIS": synopsis, **parts}
    return "".join(f"## {title}\n\n{part}\n\n" for title, part in parts.items())


def make_group_page(prototypes: dict[str, str], docs: dict[str, Doc]) -> str:
    """Return the page of prototypes that stand together."""
    group = [docs[name] for name in prototypes]
    also = [
        f"**{name}**(3), "
        for name, other in docs.items()
        if name not in prototypes
        and (other.mentions([*prototypes]) or any(d.mentions([name]) for d in group))
    ]
    lines: list[str] = []
    for doc in group:
        lines += [f"**`{doc.name}()`**", ""] if len(group) > 1 else []
        lines += doc.described()
    return make_page(
        ", ".join(prototypes),
        "; ".join(to_markdown(doc.purpose).replace("`", "") for doc in group),
        "\n".join(["```", *prototypes.values(), "```\n"]),
        DESCRIPTION="\n".join(lines),
        ATTRIBUTES=SAFETY,
        SEE_ALSO=f"{''.join(also)}**{OVERVIEW}**(3)",
    )


def list_types(header: str) -> Iterator[str]:
    """Return the header's structs and enumerations."""
    for comment in KERNEL_DOC.finditer(header):
        code = header[comment.end() : header.index("};\n", comment.end()) + 2]
        doc = parse_comment(comment[1])
        yield from (f"### {doc.name}", "", "```", code.expandtabs(8), "```")
        yield from doc.described()


def make_overview(header: str, docs: dict[str, Doc]) -> str:
    """Return the page of the library."""
    comment = FIRST_COMMENT.search(header)
    if not comment:
        raise SourceError("no comment that begins with the header's name")
    variables = [
        line
        for line in docs[ENVIRONMENT].lines
        if not line.startswith(("- ", "Returns "))
    ]
    return make_page(
        OVERVIEW,
        "initialise, clear and copy memory in ranges",
        "",
        DESCRIPTION="\n".join(parse_comment(comment[1]).lines),
        FUNCTIONS="\n".join(
            f"- `{d.name}()`: {to_markdown(d.purpose)}" for d in docs.values()
        ),
        TYPES="\n".join(list_types(header)),
        ENVIRONMENT="\n".join(variables),
        ATTRIBUTES=SAFETY,
    )


def make_pages(sources: list[Path]) -> dict[str, str]:
    """Return all pages by name, in Markdown; "" stands for a link to the last."""
    header, docs = read_header(sources), read_comments(sources)
    groups = group_prototypes(header)
    names = [name for group in groups for name in group]
    if missing := [name for name in names if name not in docs]:
        raise SourceError(f"no kernel-doc comment for {', '.join(missing)}")
    public = {name: docs[name] for name in names}
    result = {OVERVIEW: make_overview(header, public)}
    for group in groups:
        first, *links = group
        result |= {first: make_group_page(group, public)} | dict.fromkeys(links, "")
    return result


def write_pages(pages: dict[str, str], version: str, out: Path) -> None:
    """Write all pages in roff."""
    first = ""
    for name, text in pages.items():
        first = name if text else first
        parts = [
            f".SH {title.replace('_', ' ')}\n{part}\n"
            for title, part in roff.split_sections(text).items()
            if title
        ]
        head = HEAD.format(name=name.upper(), version=version)
        content = "".join([head, *parts]) if text else f".so man3/{first}.3\n"
        (out / f"{name}.3").write_text(content, "ascii")


def main() -> None:
    """Write the pages, or print their names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sources", type=Path, nargs="+", help="headers and C files")
    parser.add_argument("--list", action="store_true", help="only name the files")
    parser.add_argument("--version", default="")
    parser.add_argument("--out", type=Path, default=Path())
    args = parser.parse_args()
    try:
        if args.list:
            groups = group_prototypes(read_header(args.sources))
            print(f"{OVERVIEW}.3", *(f"{n}.3" for one in groups for n in one), sep="\n")
        else:
            write_pages(make_pages(args.sources), args.version, args.out)
    except (OSError, SourceError) as error:
        sys.exit(f"manpages: {error}")


if __name__ == "__main__":
    main()
