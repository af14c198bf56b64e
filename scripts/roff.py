# SPDX-License-Identifier: GPL-2.0-only
"""Markdown for man pages: paragraphs, code, lists, and tables, which become lists.

Own code: the library builds with only a compiler, Meson and Python.
"""

import re
from collections.abc import Iterator

BLOCK = re.compile(
    r"^```\w*\n(?P<code>(?:.*\n)*?)```$"
    r"|^(?P<level>#+) (?P<heading>.+)$"
    r"|(?P<table>(?:^\|.*\n)+)"
    r"|^- (?:`(?P<term>[^`]+)`: )?(?P<item>.+(?:\n  .+)*)"
    r"|^(?P<text>.+(?:\n(?!```|#|\||- ).+)*)",
    re.MULTILINE,
)
INLINE = re.compile(
    r"`(?P<code>[^`]+)`|\*\*(?P<strong>.+?)\*\*|\[(?P<link>.+?)\]\([^)]*\)|\\(?P<char>.)",
    re.DOTALL,
)
CELL = re.compile(r"(?<!\\)\|")
EMPTY = r"\&"
MEANINGS = ("meaning", "is", "read", "means")  # columns that need no title
NAMES = str.maketrans(
    {"\\": r"\(rs", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}
)


def split_sections(text: str) -> dict[str, str]:
    """Return the sections of a page in roff by heading; the first has none."""
    parts: dict[str, list[str]] = {"": []}
    lines = parts[""]
    for block in BLOCK.finditer(text):
        if block["level"] == "##":
            lines = parts[block["heading"].replace("`", "")] = []
        elif block["level"] != "#":
            lines += _format_block(block)
    return {
        name: ascii_only("\n".join(lines).removeprefix(".PP\n"))
        for name, lines in parts.items()
    }


def _format_block(block: re.Match[str]) -> Iterator[str]:
    if block["heading"]:
        yield f".SS {format_inline(block['heading'])}"
    elif block["code"]:
        yield f".PP\n{format_code(block['code'])}"
    elif block["table"]:
        yield from _format_table(block["table"])
    elif block["term"]:
        yield f".TP\n{_bold_text(block['term'])}\n{format_inline(block['item'])}"
    elif block["item"]:
        yield f".IP * 2\n{format_inline(block['item'])}"
    else:
        yield f".PP\n{format_inline(block['text'])}"


def format_inline(text: str) -> str:
    """Return a paragraph: code and strong are bold, a link is its text."""
    output, end = "", 0
    for match in INLINE.finditer(text):
        output += _escape_text(text[end : match.start()])
        end = match.end()
        if match["code"]:
            output += _bold_text(match["code"])
        elif match["strong"]:
            output += _bold_text(match["strong"].replace("`", ""))
        elif match["link"]:
            output += format_inline(match["link"])
        else:
            output += _escape_text(match["char"])
    lines = (output + _escape_text(text[end:])).split("\n")
    # no line may begin like a roff request
    return "\n".join(
        ("\\&" if s[:1] in ".'" else "") + s for s in map(str.strip, lines)
    )


def _escape_text(text: str) -> str:
    """Return text that troff prints literally; hyphens as hyphen or minus."""
    return re.sub(r"(?<!\w)-|-(?!\w)", r"\\-", text.translate(NAMES))


def _bold_text(text: str) -> str:
    escaped = text.translate(NAMES).replace("-", "\\-")
    whole = "\\%" if text.endswith("()") else ""  # never hyphenated
    return f"\\fB{whole}{escaped}\\fP"


def format_code(text: str) -> str:
    """Return lines that are not filled."""
    lines = [
        _bold_text(line.expandtabs(8)) if line else "" for line in text.splitlines()
    ]
    return "\n".join([".nf", *lines, ".fi"])


def _format_table(text: str) -> Iterator[str]:
    """Return a table as a list: the first cell as term, the others as its text."""
    rows = [[s.strip() for s in CELL.split(row)[1:-1]] for row in text.splitlines()]
    for first, *rest in rows[2:]:
        cells = [
            format_inline(cell if title in MEANINGS else f"{title}: {cell}")
            for title, cell in zip(rows[0][1:], rest, strict=True)
            if cell
        ]
        yield f".TP\n{format_inline(first) or EMPTY}\n{'; '.join(cells) or EMPTY}"


def ascii_only(text: str) -> str:
    """Return a page in ASCII: roff has names for everything else."""
    return "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in text)
