# SPDX-License-Identifier: GPL-2.0-only
"""The commands that inspect and switch the module (see bulkmm/options.py: add_all)."""

from bulkmm import options

COMMON = """\
--json  print the result, and errors, as JSON
--root DIR = /  read /sys, /proc and /boot (--persist: /etc) below DIR
"""
SWITCH = f"""\
--persist  write it to /etc/modprobe.d/bulkmm.conf as well, for every load of the
    module; without a loaded module, write that alone
{options.DRY_RUN}
{COMMON}"""
COMMANDS = f"""
status: control.status:status
    show what the loaded module is doing
    example: clear
    Show what each path of the loaded module does: mode, hook, requests served, requests
    that fell back to the kernel; and who clears huge pages on this kernel. For paths
    that are named everything is shown. Exit code 1 if the module is not loaded.
PATH...  show everything about this path
--format {{text,json,prometheus}}  print text, JSON, or metrics for Prometheus'
    textfile collector (default: text)
-o, --output FILE  write it to this file
--schema  print the JSON schema of all that these commands print with --json
{COMMON}
doctor: control.doctor:doctor
    tell what would attach on this kernel, and what is in the way
    Tell for each path whether the module can hook its functions on this kernel, loaded
    or not: the verdict, then what is in the way, then what to do about it. Exit code 0:
    all that is needed here would attach; 1: something would not; 3: that is unknown
    (root can read more). To see what each path would gain here, run: bulkmm bench
    kernel --kernel RELEASE --quick
{COMMON}
on: control.switch:on
    switch a path on
    example: clear --persist
    Switch a path on, in the mode given, or in the first of its modes but off.
PATH  switch this path (see: bulkmm status)
[MODE]  use this mode (see: bulkmm status PATH; default: the first but off)
{SWITCH}
off: control.switch:off
    switch a path off, or all of them
    Switch a path off, or all of them: their functions are unhooked, the kernel's own
    code does the work, and the module can be unloaded.
[PATH]  switch this path (default: all)
{SWITCH}
tune: control.change:tune
    change settings of the loaded module, or list them
    example: clear.latency_us=500
    Change settings: PATH.FILE as in sysfs, or a module parameter. All are checked
    before the first is written. Without any, all are listed.
settings:KEY=VALUE...  set KEY to VALUE, as in clear.latency_us=500
{options.DRY_RUN}
{COMMON}
watch: control.watch:watch
    show live rates and latencies
    example: clear --interval 0.5
    Show rates and the mean time of a request, path by path: a table on a terminal,
    lines elsewhere. It only reads, unless --trace is given.
PATH...  show only this path
--interval SECONDS<0.05..86400> = 1  wait this long between two reads
--count N<1..>  stop after N reads (default: when interrupted)
--trace  add medians and worst cases from the tracepoints, through its own trace
    instance (needs root)
{COMMON}"""
