# SPDX-License-Identifier: GPL-2.0-only
"""What a guest's kernel log must not contain."""

import re

BAD = re.compile(
    r"BUG:|BUG at|WARNING:|Oops|Call [Tt]race|Kernel panic|(?<!CONFIG_)KASAN|KCSAN"
    r"|UBSAN|general protection|[Uu]nable to handle|double fault|invalid opcode"
    r"|possible (?:recursive|circular) locking|suspicious RCU|lock held when"
    r"|INFO: task .* blocked|hung_task|rcu.*(?:stall|self-detected)"
    r"|soft lockup|hard LOCKUP|refcount_t|unchecked MSR|Bad page state"
    r"|list_(?:add|del) corruption|Out of memory|disagrees about version"
    # of the debug kernels: slab, page poisoning, lockdep
    r"|BUG \S+ \(|pagealloc: (?:memory corruption|single bit)|non-static key"
    r"|turning off the locking"
)
# marks of a warning; a job may expect one (lab/guest/report.sh)
WARNING = re.compile(r"WARNING:|Call [Tt]race")
# echoes of boot parameters are not messages
ECHO = re.compile(r"[Cc]ommand line(?:: | parameters )|stall warnings timeout set")
BEGIN = re.compile(r"bulkmm-lab: warnings of (\S+) in (\S+) begin")
END = "bulkmm-lab: warnings end"
# likewise of the kernel's unit tests, of which some provoke warnings: 7.3 can leave
# these out of its log, 6.12 cannot
SUITE_BEGIN = re.compile(r" # Subtest: \S+\s*$")
SUITE_END = re.compile(r"(?:\[ *[\d.]+\] )?(?:not )?ok \d+ \S")
MARKED = re.compile(rf"{BEGIN.pattern}(.*?)(?=bulkmm-lab: warnings|\Z)", re.DOTALL)
PLACE = re.compile(r"WARNING: (?:.*?([\w/.-]+\.[ch]:\d+)|.*)")
# taint from loading an unsigned out-of-tree module
ALLOWED_TAINT = 1 << 12 | 1 << 13
WARNED_TAINT = 1 << 9


def find_faults(log: str) -> list[str]:
    """Return the lines of a kernel log that must not be there."""
    faults = []
    expected = False
    for line in log.splitlines():
        if BEGIN.search(line) or SUITE_BEGIN.search(line):
            expected = True
        elif END in line or SUITE_END.match(line):
            expected = False
        elif ECHO.search(line):
            continue
        elif BAD.search(WARNING.sub("", line) if expected else line):
            faults.append(line)
    return faults


def list_warnings(log: str) -> list[tuple[str, str, list[str]]]:
    """Return for each expected warning what warned, in which arm, and where."""
    return [
        (what, arm, [place[1] or place[0] for place in PLACE.finditer(said)])
        for what, arm, said in MARKED.findall(log)
    ]


def last_lines(log: str, count: int = 15) -> str:
    """Return the end of a log, for an error message."""
    return "\n".join(f"  {line}" for line in log.strip().splitlines()[-count:])


def new_taint(before: int, after: int, allowed: int = 0) -> int:
    """Return the taint bits that a run set, except those of loading modules."""
    return after & ~before & ~ALLOWED_TAINT & ~allowed
