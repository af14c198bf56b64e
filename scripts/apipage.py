# SPDX-License-Identifier: GPL-2.0-only
"""docs/api.md, the reference of libbulkmm, from the comments in its sources.

scripts/manpages.py makes the man pages of section 3 of the same parts.
"""

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import comments
from comments import ENVIRONMENT, SAFETY, SECTION, Doc, SourceError, Sources

WIDTH = 100
PROJECT = Path(__file__).resolve().parents[1]
CORE = PROJECT / "core"
LIB = PROJECT / "lib"
PAGE = PROJECT / "docs" / "api.md"
MADE = "<!-- Made by scripts/apipage.py from the sources: change those. -->"
INTRO = (
    "Made by `scripts/apipage.py` from the comments in the sources, as are the man "
    "pages of section 3. How to install, link and use it: [library.md](library.md)."
)


def prose(text: str) -> str:
    """Return a paragraph of Markdown: parameters and functions as code."""
    text = re.sub(r"(?<![\w`])([*_<])", r"\\\1", text)
    text = re.sub(r"@(\w+(?:->\w+)?)", r"`\1`", text)
    text = re.sub(r"\b(\w+)\(\)", r"`\1()`", text)
    return re.sub(r"(?<![\w`])(-?BMM_[A-Z_]+|BULKMM_[A-Z_]+)\b", r"`\1`", text)


def sentence(text: str) -> str:
    """Return a phrase as a sentence."""
    return text[0].upper() + text[1:].rstrip(".") + "."


def items(pairs: list[tuple[str, str]]) -> list[str]:
    """Return a list of terms and their meanings."""
    return [f"- `{term}`: {prose(text)}" for term, text in pairs]


def block(text: str) -> list[str]:
    """Return code."""
    return ["```c", text.strip("\n"), "```", ""]


def spaced(paragraphs: list[str]) -> list[str]:
    """Return paragraphs of comments."""
    return [line for text in paragraphs for line in (prose(text), "")]


def described(doc: Doc) -> list[str]:
    """Return what a comment says, but not of the value returned."""
    parameters = [*items(doc.parameters), ""] if doc.parameters else []
    return [prose(sentence(doc.purpose)), "", *parameters, *spaced(doc.body)]


def types(sources: Sources) -> list[str]:
    """Return the part for the types."""
    lines = []
    for doc in sources.types:
        lines += [f"### {doc.name}", "", *block(doc.code), *described(doc)]
    return lines


def group(sources: Sources, names: list[str]) -> list[str]:
    """Return the part for functions grouped in the header."""
    lines = [f"### {', '.join(f'{name}()' for name in names)}", ""]
    lines += block("\n".join(sources.prototypes[name] for name in names))
    for name in names:
        if len(names) > 1:
            lines += [f"**`{name}()`**", ""]
        doc = sources.functions[name]
        lines += described(doc)
        if doc.returns:
            lines += [f"Returns {prose(doc.returns)}", ""]
    if others := sources.see_also(names):
        lines += [f"See also {', '.join(f'`{name}()`' for name in others)}.", ""]
    return lines


def page(sources: Sources) -> str:
    """Return the page."""
    lines = ["# API of libbulkmm", "", MADE, "", INTRO, ""]
    for text in sources.overview.body:
        section = SECTION.fullmatch(text)
        lines += [f"**{section[1]}.** {prose(section[2])}" if section else text, ""]
    lines += ["| function | does |", "|---|---|"]
    for name in sources.prototypes:
        lines.append(f"| `{name}()` | {prose(sources.functions[name].purpose)} |")
    lines += ["", "## Functions", ""]
    for names in sources.groups:
        lines += group(sources, names)
    lines += ["## Types", "", *types(sources), "## Environment", ""]
    lines += [*spaced(sources.functions[ENVIRONMENT].body), "## Threads", "", SAFETY]
    return "\n".join(narrow(lines)) + "\n"


def narrow(lines: list[str]) -> Iterator[str]:
    """Return lines wrapped to the page's width, except tables and code."""
    code = False
    for line in lines:
        code ^= line.startswith("```")
        if code or not line or line.startswith(("|", "```", "#")) or "\n" in line:
            yield line
        else:
            more = "  " if line.startswith("- ") else ""
            yield from textwrap.wrap(
                line, WIDTH, subsequent_indent=more, break_on_hyphens=False
            )


def made() -> str:
    """Return the page generated from the current sources."""
    sources = [*sorted(CORE.glob("*.c")), *sorted(LIB.rglob("*.c"))]
    return page(comments.read(CORE / "bulkmm.h", sources))


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=PAGE, metavar="FILE")
    out = parser.parse_args().out
    try:
        out.write_text(made(), encoding="utf-8")
    except (OSError, SourceError) as error:
        sys.exit(f"apipage: {error}")


if __name__ == "__main__":
    main()
