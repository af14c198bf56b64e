# SPDX-License-Identifier: GPL-2.0-only
"""Man pages of section 3, from docs/api.md: one for each heading of a function.

Further functions of a heading are links to its page; the overview is the page's
introduction, with its types and the environment variables.
"""

import argparse
import re
from pathlib import Path

import roff

BUILD = "cc program.c $(pkg-config --cflags --libs bulkmm)"
HEAD = (
    '.\\" SPDX-License-Identifier: GPL-2.0-only OR MIT\n'
    '.TH {name} 3 "" "bulkmm {version}" "Bulk memory management"\n'
)
PURPOSE = re.compile(r"^\| `(bmm_\w+)\(\)` \| (.*) \|$", re.MULTILINE)
PART = re.compile(r"^## (\w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
GROUP = re.compile(
    r"^### (?P<names>[^\n]*)\n\n(?P<code>```.*?```\n)(?P<said>.*?)(?=^### |\Z)",
    re.MULTILINE | re.DOTALL,
)
ALSO = re.compile(r"^See also ((?:.|\n)*?)\.$", re.MULTILINE)


def page(name: str, purpose: str, code: str, **said: str) -> str:
    """Return a page in Markdown; titles of sections have _ for a space."""
    synopsis = f"```\n#include <bulkmm.h>\n```\n{code}```\n{BUILD}\n```"
    parts = {"NAME": f"{name} - {purpose}", "SYNOPSIS": synopsis, **said}
    return "".join(f"## {title}\n\n{part}\n\n" for title, part in parts.items())


def pages(text: str) -> dict[str, str]:
    """Return all pages by name, in Markdown; "" stands for a link to the last."""
    purposes = {name: said.replace("`", "") for name, said in PURPOSE.findall(text)}
    parts = dict(PART.findall(text))
    end = text.index("| function")
    found = {
        "bulkmm": page(
            "bulkmm",
            "initialise, clear and copy memory in ranges",
            "",
            DESCRIPTION=text[text.index("\n\n", text.index("library.md")) : end],
            FUNCTIONS="".join(f"- `{n}()`: {said}\n" for n, said in purposes.items()),
            TYPES=parts["Types"],
            ENVIRONMENT=parts["Environment"],
            ATTRIBUTES=parts["Threads"],
        )
    }
    for one in GROUP.finditer(parts["Functions"]):
        names = re.findall(r"\w+(?=\()", one["names"])
        also = re.findall(r"\w+(?=\()", " ".join(ALSO.findall(one["said"])))
        found |= dict.fromkeys(names, "")
        found[names[0]] = page(
            ", ".join(names),
            "; ".join(purposes[name] for name in names),
            one["code"],
            DESCRIPTION=ALSO.sub("", one["said"]),
            ATTRIBUTES=parts["Threads"],
            SEE_ALSO=", ".join(f"**{name}**(3)" for name in (*also, "bulkmm")),
        )
    return found


def main() -> None:
    """Write the pages, or print their names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path, metavar="api.md")
    parser.add_argument("--list", action="store_true", help="only name the files")
    parser.add_argument("--version", default="")
    parser.add_argument("--out", type=Path, default=Path())
    args = parser.parse_args()
    first = ""
    for name, text in pages(args.source.read_text(encoding="utf-8")).items():
        if args.list:
            print(f"{name}.3")
            continue
        first = name if text else first
        said = HEAD.format(name=name.upper(), version=args.version)
        for title, part in roff.sections(text).items():
            said += f".SH {title.replace('_', ' ')}\n{part}\n" if title else ""
        said = said if text else f".so man3/{first}.3\n"
        (args.out / f"{name}.3").write_text(said, encoding="ascii")


if __name__ == "__main__":
    main()
