# SPDX-License-Identifier: GPL-2.0-only
"""Man pages and completion of the command: bulkmm.1, bulkmm.4, bash, zsh, fish.

Made from the parser (by argparse-manpage and shtab), docs/command.md and
docs/abi.md; nothing is documented only here.
"""

import argparse
import re
import shlex
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import roff
import shtab
from argparse_manpage.manpage import Manpage
from roff import format_code

from bulkmm import cli
from lab.scenario import SCENARIOS

PROJECT = Path(__file__).resolve().parents[1]
MANUAL = "Bulk memory management"
LICENCE = "SPDX-License-Identifier: GPL-2.0-only"
DESCRIPTION = re.compile(r'MODULE_DESCRIPTION\("([^"]*)"\)')
PLACES = {  # below PREFIX/share
    "bash": "bash-completion/completions/bulkmm",
    "zsh": "zsh/site-functions/_bulkmm",
    "fish": "fish/vendor_completions.d/bulkmm.fish",
}
# Looks up names of the loaded module at completion time. Run by sh -c with the
# words of the command line as arguments.
HOME = 'cd "${BULKMM_SYSFS:-/sys/kernel/bulkmm}" 2>/dev/null || exit; '
LOOK_UP = {
    "PATH": 'for f in */mode; do echo "${f%/mode}"; done',
    "MODE": 'for w; do cat "./$w/mode" 2>/dev/null; done | tr -d "[]" | tr " " "\\n"',
    "KEY=VALUE": "find . -mindepth 2 -maxdepth 2 -type f -perm -200 "
    '! -name mode -printf "%P=\\n" | tr / .',
}
FILES = re.compile(r"FILE\b.*|RESULT\.json|[AB]\.json")
# A setting's value follows: no space after it.
NO_SPACE = """
_bulkmm() {
	_shtab_bulkmm "$@"
	[[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null
}
complete -o bashdefault -F _bulkmm bulkmm
"""


def list_actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield all actions of a parser and its subparsers."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                yield from list_actions(subparser)


def looked_up(metavar: str) -> dict[str, Any]:
    """Return for each shell how to complete names of the loaded module."""
    run = f"sh -c {shlex.quote(HOME + LOOK_UP[metavar])} sh"
    name = f"_bulkmm_{metavar.partition('=')[0].lower()}"
    words = '"${COMP_WORDS[@]:1}"'
    suffix = "-S '' " if "=" in metavar else ""
    return {
        "bash": name,
        "zsh": name,
        "fish": f"({name})",
        "preamble": {
            "bash": f'{name}() {{ compgen -W "$({run} {words})" -- "$1"; }}',
            "zsh": f'{name}() {{ compadd {suffix}-- ${{(f)"$({run} $words)"}} }}',
            "fish": f"function {name}\n  {run} (commandline -opc)\nend",
        },
    }


def add_help(
    parser: argparse.ArgumentParser, below: argparse.ArgumentParser | None = None
) -> None:
    """Add "help", which names of commands follow, without their options."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            commands = [*action._choices_actions]
            if below is None:
                below = action.add_parser("help", help="show a command's options")
            names = below.add_subparsers(metavar="COMMAND")
            for command in commands:
                name = names.add_parser(command.dest, help=command.help, add_help=False)
                add_help(action.choices[command.dest], name)


def make_completion(shell: str, *, rooms: bool) -> str:
    """Return the completion of a shell."""
    parser = cli.build_parser(rooms=rooms)
    for action in list_actions(parser):
        metavar = str(action.metavar)
        if metavar in LOOK_UP:
            action.complete = looked_up(metavar)  # type: ignore[attr-defined]
        elif metavar == "SCENARIO":
            action.choices = [one.name for one in SCENARIOS]
        elif FILES.fullmatch(metavar):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif metavar == "DIR":
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    add_help(parser)
    text = shtab.complete(parser, shell)
    first, rest = text.split("\n", 1)  # zsh needs its first line first
    return f"{first}\n# {LICENCE}\n{rest}{NO_SPACE if shell == 'bash' else ''}"


def make_page(
    parser: argparse.ArgumentParser,
    number: int,
    about: str,
    version: str,
    extra: dict[str, str],
) -> str:
    """Return a man page: the parser's text and our own sections."""
    manpage = Manpage(parser, format="single-commands-section")
    manpage.manual, manpage.section = MANUAL, number
    manpage.description = about[:1].lower() + about[1:].rstrip(".")  # of its NAME
    manpage.source, manpage.date = f"bulkmm {version}", " "  # reproducible
    for name, text in extra.items():
        manpage.add_section(name, ">", text)
    return f'.\\" {LICENCE}\n{roff.ascii_only(str(manpage))}'


def command_page(version: str, *, rooms: bool) -> str:
    """Return bulkmm.1."""
    docs = (PROJECT / "docs" / "command.md").read_text("utf-8")
    parts = roff.split_sections(docs)
    blocks = re.findall(r"^```\n(.*?)^```\n", docs, re.DOTALL | re.MULTILINE)
    extra = {
        "Exit status": parts["Exit codes"],
        "Environment": parts["Environment"],
        "Examples": "\n.PP\n".join(roff.ascii_only(format_code(one)) for one in blocks),
        "See also": ".BR bulkmm (3),\n.BR bulkmm (4)",
    }
    parser = cli.build_parser(rooms=rooms)
    return make_page(parser, 1, parser.description or "", version, extra)


def module_page(version: str) -> str:
    """Return bulkmm.4."""
    match = DESCRIPTION.search((PROJECT / "module" / "main.c").read_text("utf-8"))
    if not match:
        raise ValueError("the module's source has no description")
    parts = roff.split_sections((PROJECT / "docs" / "abi.md").read_text("utf-8"))
    extra = {"Description": parts.pop(""), **parts}
    extra["Synopsis"] = format_code("modprobe bulkmm [PARAMETER=VALUE]...")
    extra["See also"] = ".BR bulkmm (1),\n.BR bulkmm (3)"
    parser = argparse.ArgumentParser("bulkmm", add_help=False)
    return make_page(parser, 4, match[1], version, extra)


def make_pages(version: str, *, rooms: bool = True) -> dict[str, str]:
    """Return the files by path; ``rooms``: with the commands of a checkout."""
    return {
        "man/man1/bulkmm.1": command_page(version, rooms=rooms),
        "man/man4/bulkmm.4": module_page(version),
        **{
            place: make_completion(shell, rooms=rooms)
            for shell, place in PLACES.items()
        },
    }


def main() -> None:
    """Write the files below a directory."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--version", default=metadata.version("bulkmm"))
    parser.add_argument("--installed", action="store_true", help="without bench, lab")
    args = parser.parse_args()
    try:
        for name, text in make_pages(args.version, rooms=not args.installed).items():
            file = args.out / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        sys.exit(f"commandpages: {error}")


if __name__ == "__main__":
    main()
