# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm worth`` (see bulkmm/options.py: add_all)."""

USUAL = "60s"
COMMANDS = f"""
worth: worth.run:run
    count what the module would save on this machine, with nothing loaded
    example: --for 10m
    usage: [OPTION...] [--for TIME | -- COMMAND...]
    Count calls and time of the kernel's functions that the module serves, on the
    running kernel and with nothing loaded, and tell how many seconds the module would
    save. Kprobe events in a trace instance of its own count; every trace setting is
    restored, by the next run if this one is killed. Needs root. Ends with the exit code
    of COMMAND, if there is one.
words:COMMAND...  count while this command runs (default: for a while)
--for time:TIME  count for so long, as in 90s, 10m or 24h; Ctrl-C ends it earlier
    (default: {USUAL})
--path PATH...  count for this path only; may be given again
--measure  measure the ratios on this CPU first, for half a minute or longer
    (default: those kept for it)
--compare FILE.json  show what was expected in this earlier result against what is
    measured now, with the module loaded
--json  print the result as JSON, and errors too
-o, --output FILE  write the result, as JSON, to this file
"""
