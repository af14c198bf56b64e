# SPDX-License-Identifier: GPL-2.0-only
"""Markdown for man pages: paragraphs, code and tables, which become lists.

Renders what markdown-it parses. The writer of docutils would keep tables, too wide
for a terminal, and need two more packages.
"""

from collections.abc import Iterator

from manpages import code, escape, quote
from markdown_it import MarkdownIt
from markdown_it.token import Token

MEANINGS = ("meaning", "is", "read", "means")  # columns that need no title
PARSER = MarkdownIt().enable("table")


def sections(text: str) -> dict[str, str]:
    """Return the sections of a page in roff by heading; the first has none."""
    found: dict[str, list[str]] = {"": []}
    name, tokens = "", PARSER.parse(text)
    for i, token in enumerate(tokens):
        if token.type == "heading_open" and token.tag != "h1":
            name = tokens[i + 1].content.replace("`", "")
            found[name] = []
        elif token.type in ("fence", "code_block"):
            found[name] += [".PP", code(token.content)]
        elif token.type == "paragraph_open":
            found[name] += [".PP", inline(tokens[i + 1])]
        elif token.type == "table_open":
            found[name] += table(tokens[i:])
    return {name: ascii_only("\n".join(lines)) for name, lines in found.items()}


def inline(token: Token) -> str:
    """Return a paragraph: code and strong are bold, a link is its text."""
    said, strong = "", False
    for child in token.children or ():
        if child.type in ("strong_open", "strong_close"):
            strong = child.type == "strong_open"
        elif child.type == "code_inline" or (strong and child.content):
            said += "\\fB" + quote(child.content).replace("-", "\\-") + "\\fP"
        else:
            said += "\n" if child.type == "softbreak" else escape(child.content)
    # no line may begin like a roff request
    return "\n".join(f"\\&{s}" if s[:1] in ".'" else s for s in said.split("\n"))


def table(tokens: list[Token]) -> Iterator[str]:
    """Return a table as a list: the first cell as term, the others as its text."""
    rows: list[list[Token]] = []
    for token in tokens:
        if token.type == "table_close":
            break
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(token)
    titles = [cell.content for cell in rows[0]]
    for first, *rest in rows[1:]:
        said = [
            inline(cell) if title in MEANINGS else f"{escape(title)}: {inline(cell)}"
            for title, cell in zip(titles[1:], rest, strict=True)
            if cell.content
        ]
        yield f".TP\n{inline(first)}\n{'; '.join(said) or chr(92) + '&'}"


def ascii_only(text: str) -> str:
    """Return a page in ASCII: roff has names for everything else."""
    return "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in text)
