# SPDX-License-Identifier: GPL-2.0-only
"""Man pages of section 3, of the same parts as docs/api.md.

Functions without a blank line between them in the header share a page named after
the first; the others are links to it. The overview is the header's first comment,
with its types and the environment variables.
"""

import argparse
import sys
from pathlib import Path

import comments
import roff
from apipage import block, described, items, prose, sentence, spaced, types
from comments import ENVIRONMENT, SAFETY, SECTION, SourceError, Sources

OVERVIEW = "bulkmm"
BUILD = "cc program.c $(pkg-config --cflags --libs bulkmm)"
HEAD = (
    '.\\" SPDX-License-Identifier: GPL-2.0-only OR MIT\n'
    '.TH {name} 3 "" "bulkmm {version}" "Bulk memory management"\n'
)


def opening(name: str, purpose: str, prototypes: list[str]) -> list[str]:
    """Return the first sections."""
    lines = ["## NAME", f"{name} - {purpose.replace('@', '')}", "## SYNOPSIS"]
    for text in ("#include <bulkmm.h>", *prototypes, BUILD):
        lines += block(text)
    return [*lines, "## DESCRIPTION"]


def ending(names: list[str]) -> list[str]:
    """Return the last sections."""
    others = ", ".join(f"**{name}**(3)" for name in names)
    return ["## ATTRIBUTES", SAFETY, "## SEE ALSO", others]


def function_page(sources: Sources, names: list[str]) -> list[str]:
    """Return the page of a group of functions in Markdown."""
    docs = [sources.functions[name] for name in names]
    purposes = "; ".join(doc.purpose for doc in docs)
    prototypes = [sources.prototypes[name] for name in names]
    lines = opening(", ".join(names), purposes, prototypes)
    for doc in docs:
        if len(docs) > 1:
            lines.append(f"### {doc.name}()")
        lines += described(doc)
    if returned := [(f"{d.name}()", sentence(d.returns)) for d in docs if d.returns]:
        lines += ["## RETURN VALUE", *items(returned)]
    return [*lines, "", *ending([*sources.see_also(names), OVERVIEW])]


def overview_page(sources: Sources) -> list[str]:
    """Return the page of the library in Markdown."""
    lines = opening(OVERVIEW, sources.overview.purpose, [])
    for text in sources.overview.body:
        if section := SECTION.fullmatch(text):
            lines += [f"## {section[1].upper()}", prose(section[2]), ""]
        else:
            lines += [prose(text), ""]
    purposes = [
        (f"{name}()", sentence(sources.functions[name].purpose))
        for name in sources.prototypes
    ]
    lines += ["## FUNCTIONS", *items(purposes), "", "## TYPES", *types(sources)]
    lines += ["## ENVIRONMENT", *spaced(sources.functions[ENVIRONMENT].body)]
    return lines + ending([*sources.prototypes])


def pages(sources: Sources, version: str) -> dict[str, str]:
    """Return all pages by file name."""

    def made(name: str, lines: list[str]) -> str:
        parts = roff.sections("\n".join(lines) + "\n").items()
        text = "".join(f".SH {title}\n{part}\n" for title, part in parts if title)
        return HEAD.format(name=name.upper(), version=version) + text

    found = {f"{OVERVIEW}.3": made(OVERVIEW, overview_page(sources))}
    for names in sources.groups:
        found[f"{names[0]}.3"] = made(names[0], function_page(sources, names))
        found |= {f"{name}.3": f".so man3/{names[0]}.3\n" for name in names[1:]}
    return found


def main() -> None:
    """Write the pages, or print their names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("header", type=Path)
    parser.add_argument("sources", type=Path, nargs="*")
    parser.add_argument("--list", action="store_true", help="only name the files")
    parser.add_argument("--version", default="")
    parser.add_argument("--out", type=Path, default=Path())
    args = parser.parse_args()
    try:
        if args.list:
            groups, _ = comments.declared(comments.whole(args.header))
            names = [name for group in groups for name in group]
            print("\n".join(f"{name}.3" for name in [OVERVIEW, *names]))
            return
        sources = comments.read(args.header, args.sources)
        for name, text in pages(sources, args.version).items():
            (args.out / name).write_text(text)
    except (OSError, SourceError) as error:
        sys.exit(f"manpages: {error}")


if __name__ == "__main__":
    main()
