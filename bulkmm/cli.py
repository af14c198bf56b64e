# SPDX-License-Identifier: GPL-2.0-only
"""The bulkmm command: documented exit codes, errors of one line."""

import argparse
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from typing import Any, NoReturn

from bulkmm.shell import checkout, options, streams
from bulkmm.shell.errors import BulkmmError, Exit, UsageError, unknown_word

# Modules and their commands, in the order of --help. Only the current command's
# module is imported: "status" must not wait for the lab. Those of a checkout's rooms
# are not installed.
PARTS = {
    "bulkmm.control.command": (
        *("status", "doctor", "on", "off", "tune", "watch"),
        *("worth", "populate", "stage", "pool"),
    ),
    "bench.command": ("bench",),
    "lab.command": ("lab",),
    "bulkmm.report.command": ("show", "compare", "report"),
}


PRINTS, RESULT = ("--json", "--markdown"), ".json"


class Parser(argparse.ArgumentParser):
    """A parser whose errors are like all others: one line, and JSON."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:  # noqa: ANN401
        """Suggest the closest word, if any."""
        if action.choices is not None and value not in action.choices:
            spoken = action.option_strings or [str(action.metavar or action.dest)]
            kind = spoken[-1] if action.option_strings else spoken[-1].lower()
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
                kind = f"{self.prog} command".removeprefix("bulkmm ")
            self.error(str(unknown_word(kind, str(value), map(str, action.choices))))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # noqa: ANN401
        """Reject an unknown option or word here, where the known ones are."""
        if self.prog == "bulkmm compare" and "--" in args:
            at = args.index("--")  # argparse consumes the first one
            args = [*args[:at], "--", *args[at:]]
        for action in self._actions if not args else ():
            if action.required and action.choices is not None:
                names = ", ".join(action.choices)
                self.error(f"give a command: there are {names}")
        flags = [word for one in self._actions for word in one.option_strings]
        self._check_options(args, flags)
        self._check_files(args, flags)
        namespace, rest = super().parse_known_args(args, namespace)
        for word in rest if not self._subparsers else ():
            if len(word) > 1 and word.startswith("-"):
                self.error(str(unknown_word("option", word.partition("=")[0], flags)))
            before = args[args.index(word) - 1]
            if before in PRINTS and before in flags:
                self._refuse_file(before, word, flags)
            takes_words = any(not one.option_strings for one in self._actions)
            apart = takes_words and {*flags} & {*args[: args.index(word)]}
            how = ": give options before or after all words" if apart else ""
            self.error(f"unexpected {word}{how}")
        return namespace, rest

    def _check_options(self, args: list[str], flags: list[str]) -> None:
        """Reject an unknown long option first: argparse would miss a word first."""
        for word in args:
            name = word.partition("=")[0]
            if word == "--" or (self._subparsers and not word.startswith("-")):
                return  # a command's own words, or options, follow
            if name.startswith("--") and not any(f.startswith(name) for f in flags):
                self.error(str(unknown_word("option", name, flags)))

    def _check_files(self, args: list[str], flags: list[str]) -> None:
        """Reject a file for an option that prints; it may look like another word."""
        own_words = args[: args.index("--")] if "--" in args else args
        for word, following in pairwise([*own_words, ""]):
            name, equals, value = word.partition("=")
            if name not in PRINTS or name not in flags:
                continue
            file = value if equals else following
            if equals or ("-o" in flags and file.endswith(RESULT)):
                self._refuse_file(name, file, flags)

    def _refuse_file(self, option: str, file: str, flags: list[str]) -> NoReturn:
        writes = option == "--json" and "-o" in flags
        how = f"-o {file} writes it" if writes else "it prints the result"
        self.error(f"unexpected {file}: {option} takes no file, {how}")

    def error(self, message: str) -> NoReturn:
        """Raise the command's error for bad arguments."""
        raise UsageError(f"{message} (see: {self.prog} --help)")


def build_parser(
    command: str | None = None, *, rooms: bool = True
) -> argparse.ArgumentParser:
    """Return the parser of the whole command, or of a single subcommand.

    Without ``rooms``, and where they are not: of what is installed.
    """
    rooms = rooms and checkout.has_rooms()
    parts = {m: c for m, c in PARTS.items() if rooms or m.startswith("bulkmm.")}
    top = Parser(
        prog="bulkmm",
        description="Initialise, clear and map memory in ranges instead of page by "
        "page: control the module, measure before and after, show the results.",
        epilog='"bulkmm help COMMAND" shows the options of a command, and an example.'
        + ("" if rooms else " In a source checkout also: bench, lab."),
    )
    top.add_argument("--version", action="store_true", help="print the version")
    sub = top.add_subparsers(
        dest="command", required=True, metavar="COMMAND", title="commands"
    )
    is_command = any(command in commands for commands in parts.values())
    for module, commands in parts.items():
        if not is_command or command in commands:
            part = import_module(module)
            if hasattr(part, "add_parser"):
                part.add_parser(sub)
            else:
                options.add_all(part.COMMANDS, sub)
    return top


def main(argv: list[str] | None = None) -> int:
    """Run the command; every error is one line and a documented exit code."""
    words = sys.argv[1:] if argv is None else argv
    _heed_signals()
    streams.replace_streams()
    args = argparse.Namespace(argv=words)  # and what was parsed so far
    try:
        code = _run_command(words, args)
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - the last resort
        return _report_error(error, words, args)
    return code


def _heed_signals() -> None:
    """Make fatal signals act as Ctrl-C, so that nothing is left behind.

    And SIGCHLD, which whoever starts this may ignore, report how our programs end: all
    would seem to succeed, and to wait for one would fail.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def _run_command(words: list[str], args: argparse.Namespace) -> int:
    if words[:1] == ["help"]:
        words = [*(word for word in words if word != "help"), "--help"]
    if not words:
        build_parser().print_help()
        return Exit.OK
    if words[0] == "--version":
        from importlib import metadata  # takes longer than most commands

        print(f"bulkmm {metadata.version('bulkmm')}")
        return Exit.OK
    command = next((word for word in words if not word.startswith("-")), None)
    if command in checkout.ROOMS:
        checkout.need_rooms(str(command))
    build_parser(command).parse_args(words, args)
    module, _, name = args.run.partition(":")
    code: int = getattr(import_module(module), name)(args)
    return code


def _report_error(
    error: BaseException, words: list[str], args: argparse.Namespace
) -> int:
    """Print the error in one line, as JSON too if requested."""
    message, code = _explain_error(error)
    if not message:  # --help and --version end like this
        return code
    own_words = words[: words.index("--")] if "--" in words else words
    sys.stderr.write(f"bulkmm: {message}\n")
    if getattr(args, "json", None) is True or "--json" in own_words:
        from bulkmm.control.json_output import Error, Failure

        with suppress(OSError):  # a full device has been reported
            print(Error(error=Failure(message, int(code))).to_json(None))
            sys.stdout.flush()
    return code


def _explain_module(error: ModuleNotFoundError) -> Exception:
    """Return how to install a module that is missing; of our own, the error."""
    from bulkmm import libraries

    name = str(error.name)
    if libraries.is_optional(name):
        remedy = libraries.explain_remedy(name)
        return BulkmmError(f"{name} is not installed: {remedy}")
    rooms = ("bulkmm", *checkout.ROOMS)
    if name.partition(".")[0] in rooms or not checkout.has_rooms():
        return error
    return BulkmmError(f"{name} is not installed: run make build")


def _explain_error(error: BaseException) -> tuple[str, int]:
    """Return an error's message and exit code."""
    if isinstance(error, ModuleNotFoundError):
        error = _explain_module(error)
    if isinstance(error, SystemExit):
        return "", error.code if isinstance(error.code, int) else Exit.OK
    if isinstance(error, BulkmmError):
        return str(error), error.exit
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", Exit.INTERRUPTED
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}", Exit.ENVIRONMENT
    if isinstance(error, MemoryError):
        return "out of memory", Exit.ENVIRONMENT
    if os.environ.get("BULKMM_TRACEBACK"):
        raise error
    message = " ".join(str(error).split())
    return (
        f"internal error: {type(error).__name__}: {message} "
        "(please report it; BULKMM_TRACEBACK=1 shows where)"
    ), Exit.INTERNAL


if __name__ == "__main__":
    sys.exit(main())
