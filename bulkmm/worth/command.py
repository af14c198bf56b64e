# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm worth``: the options."""

from pathlib import Path

from bulkmm import options

USUAL = "60s"


def add_parser(sub: options.Subparsers) -> None:
    """Add ``worth`` to the parser of the whole command."""
    worth = options.add(
        sub,
        "worth",
        "count what the module would save on this machine, with nothing loaded",
        """Count calls and time of the kernel's functions that the module serves, on the
        running kernel and with nothing loaded, and tell how many seconds the module
        would save. Kprobe events in a trace instance of its own count; every trace
        setting is restored, by the next run if this one is killed. Needs root. Ends
        with the exit code of COMMAND, if there is one.""",
        run="bulkmm.worth.run:run",
        example="bulkmm worth --for 10m",
    )
    worth.usage = "%(prog)s [-h] [OPTION...] [--for TIME | -- COMMAND...]"
    table = """
        words:COMMAND...  count while this command runs (default: for a while)
        --for TIME  count for so long, as in 90s, 10m or 24h; Ctrl-C ends it earlier
            (default: 60s)
        --path PATH...  count for this path only; may be given again
        --measure  measure the ratios on this CPU first, for half a minute or longer
            (default: those kept for it)
        --compare FILE.json  show what was expected in this earlier result against
            what is measured now, with the module loaded
        --json  print the result as JSON, and errors too
        -o, --output FILE  write the result, as JSON, to this file
        """
    options.take(worth, table, path=[])
    for action in worth._actions:  # noqa: SLF001 - "for" is a word of Python
        if "--for" in action.option_strings:
            action.dest = "time"
        if "--compare" in action.option_strings:
            action.type = Path
    worth.set_defaults(time=None)
