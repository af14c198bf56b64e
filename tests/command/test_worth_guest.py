# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm worth`` on stock kernels: exact counts, and no trace left of it."""

import re
from typing import Any

import guest
import pytest
from guest import Results, Step
from lablib import series

from bulkmm.shell.errors import Exit

pytestmark = pytest.mark.vm

FAULTED, POPULATED = 24, 40
# All settings that tracing has and that worth could have changed.
FILES = (
    *("kprobe_events", "synthetic_events", "dynamic_events", "uprobe_events"),
    *("set_event", "current_tracer", "trace_clock", "tracing_on", "buffer_size_kb"),
    *("set_ftrace_filter", "enabled_functions"),
    *("events/enable", "events/kprobes/theirs/enable"),
    "instances/theirs/events/kprobes/theirs/trigger",
)
SETTINGS = f"""
cd /sys/kernel/tracing
for f in {" ".join(FILES)}; do
	echo "$f"; cat "$f"
done
ls instances events
"""
# The same without a process for each: an emulated guest starts them slowly.
READ = f"""
import os, signal, subprocess, sys
from pathlib import Path
sys.path.insert(0, "/command")
from bulkmm.control.system_files import SystemFiles
tracing = Path("/sys/kernel/tracing")
home = SystemFiles(tracing)
def settings():
    texts = [file.read_text() for file in map(tracing.joinpath, {FILES})]
    return texts, os.listdir(tracing / "instances"), os.listdir(tracing / "events")
"""
CLEARS = {"6.1": "clear_huge_page"}  # later: folio_zero_user
# Probes of others: a kprobe with a histogram in an instance, and a synthetic event.
FOREIGN_PROBES = """
cd /sys/kernel/tracing && mkdir instances/theirs &&
f=folio_zero_user && { grep -qw $f available_filter_functions || f=clear_huge_page; } &&
echo "p:theirs $f" >>kprobe_events &&
echo 'theirs u64 a' >>synthetic_events &&
echo 'hist:keys=common_pid' >instances/theirs/events/kprobes/theirs/trigger
"""
# huge pages: N touched, M populated
WORK = (
    f"bmmfault -n {FAULTED} -b 8 thp 2048 write-first && "
    f"bmmfault -n {POPULATED} -b 8 hugetlb 2048 madv-populate"
)
THP = "/sys/kernel/mm/transparent_hugepage"
HUGE = f"""
f={THP}/hugepages-2048kB/enabled; [ -e $f ] || f={THP}/enabled
echo madvise >$f"""
POOL = "echo 16 >/proc/sys/vm/nr_hugepages"
# Each child is killed before its Nth write to tracefs, and what it left is removed
# by the next run; the last one comes to its end.
KILLED = """
from bulkmm.control import tracefs
from bulkmm.worth import probes
def child(last):
    write, many = SystemFiles.write, 0
    def counted(self, name, text, **how):
        nonlocal many
        many += 1
        if many == last:
            os.kill(os.getpid(), signal.SIGKILL)
        write(self, name, text, **how)
    SystemFiles.write = counted
    functions = ["set_zone_contiguous", "vmap_range_noflush"]
    with probes.install_probes(home, functions) as probe:
        probe.read()
before, killed = settings(), 0
while True:
    pid = os.fork()
    if not pid:
        try:
            child(killed + 1)
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    if not os.WIFSIGNALED(status):
        break
    killed += 1
    assert settings() != before, killed
    tracefs.remove_leftovers(home)
    assert settings() == before, f"after the kill before write {killed}"
print(killed)
"""
# Where it cannot count: what stands in the way, one after the other, each in a child.
OBSTACLES = """
from bulkmm import cli
from bulkmm.control.tracefs import SYNTHETIC, own_name
def user():
    os.setuid(65534)
def container():
    os.unshare(os.CLONE_NEWPID)
    if pid := os.fork():
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
def tracefs():
    os.unshare(os.CLONE_NEWNS)
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    for place in ("/sys/kernel/tracing", "/sys/kernel/debug"):
        subprocess.run(["umount", "-l", place])
def kprobes():
    Path("/sys/kernel/debug/kprobes/enabled").write_text("0")
def instance():
    home.at(f"instances/{own_name('worth')}").mkdir()
def event():
    home.write(SYNTHETIC, f"{own_name('worth')} u64 a", append=True)
before = settings()
for way in (user, container, tracefs, kprobes, instance, event):
    print(way.__name__, end=" ", flush=True)
    if not (pid := os.fork()):
        way()
        os.dup2(1, 2)
        os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
        os._exit(cli.main(["worth", "--for", "1s"]))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    Path("/sys/kernel/debug/kprobes/enabled").write_text("1")
    assert (code, settings()) == (3, before), (way, code)
"""
MESSAGES = {
    "user": "run it as root",
    "container": "from within a container",
    "tracefs": "mount -t tracefs",
    "kprobes": "kprobes are off",
    "instance": "File exists",
    "event": "the kernel refuses the probes",
}
LOCKED = """
f=/sys/kernel/security/lockdown
{ [ -e $f ] || mount -t securityfs none ${f%/*}; } && echo confidentiality >$f
"""
# SIGTERM as soon as there is something to clean up, or when all is set
TERMINATE = """
cd /command && python3.13 -m bulkmm.cli worth --for 1h --json & p=$!
cd /sys/kernel/tracing
while kill -0 $p && ! cat {0} 2>/dev/null | grep -q {1}; do sleep 0.1; done
sleep {2}; kill $p; wait $p
"""
STEPS: dict[str, Step] = {
    "huge when asked": ("sh", HUGE),
    "prepare": ("sh", f"{POOL} && {FOREIGN_PROBES}"),
    "before": ("sh", SETTINGS),
    "counted": ("worth", "--json", "-o", "/counted", "--", "sh", "-c", WORK),
    "after": ("sh", SETTINGS),
    "failing": ("worth", "--path", "clear", "--", "sh", "-c", "exit 7"),
    "signalled": ("worth", "--path", "clear", "--", "sh", "-c", "kill -9 $$"),
    "timed": ("worth", "--for", "1s", "--path", "clear"),
    "ended": (
        "sh",
        TERMINATE.format("instances/bulk*/events/bulk*/in/trigger", "sym", 1),
    ),
    "early": ("sh", TERMINATE.format("synthetic_events", "bulkmm_worth", 0)),
    "after early": ("sh", SETTINGS),
    "misused": ("worth", "--path", "cleer", "--for", "1s", "--json"),
    "refused": ("sh", f"python3.13 - <<'E'\n{READ}{OBSTACLES}\nE\n"),
    "killed": ("sh", f"python3.13 - <<'E'\n{READ}{KILLED}\nE\n"),
    "after all": ("sh", SETTINGS),
    "load": ("sh", "insmod /lib/modules/bulkmm.ko"),
    "on": ("on", "clear"),
    "loaded": ("sh", SETTINGS),
    "compared": ("worth", "--json", "--compare", "/counted", "--", "sh", "-c", WORK),
    "status": ("status", "clear", "--json"),
    "after compared": ("sh", SETTINGS),
    "off": ("off",),
    "unload": ("sh", "rmmod bulkmm"),
    "lock": ("sh", LOCKED),
    "locked": ("worth", "--for", "1s"),
}


@pytest.fixture(scope="module", params=series("7.3"))
def results(request: pytest.FixtureRequest) -> Results:
    """Do all steps on a kernel."""
    return guest.run_steps(request.param, STEPS, "init_on_alloc=1")


def rows_by_function(
    results: Results, step: str, field: str = "functions"
) -> dict[str, dict[str, Any]]:
    """Return the rows of a document by function."""
    return {one["function"]: one for one in results.json(step)[field]}


def expected_calls(results: Results) -> dict[str, int]:
    """Return the calls of WORK: 6.13 and later leave its touches to the allocator."""
    if results.kernel == "7.3":
        return {
            "do_huge_pmd_anonymous_page": FAULTED,
            clearing_function(results): POPULATED,
        }
    return {clearing_function(results): FAULTED + POPULATED}


def clearing_function(results: Results) -> str:
    """Return the function that zeroes huge pages."""
    return CLEARS.get(results.kernel, "folio_zero_user")


@pytest.mark.parametrize("step", ["counted", "compared"])
def test_every_call_is_counted_and_timed(results: Results, step: str) -> None:
    functions = rows_by_function(results, step)
    for name, calls in expected_calls(results).items():
        row = functions[name]
        assert (row["calls"], row["timed"]) == (calls, calls), functions
        assert row["seconds"] > 0
        if step == "compared" and row["path"] == "clear":  # which is on
            assert row["saved_seconds"] is None
        else:
            assert 0 <= row["saved_seconds"][0] <= row["saved_seconds"][1]
    for name in ("memmap_init_zone_device", "set_zone_contiguous"):
        assert functions[name]["calls"] == 0


def test_the_module_serves_what_was_counted(results: Results) -> None:
    clear = results.paths("status")["clear"]
    calls = expected_calls(results)[clearing_function(results)]
    assert clear["counters"]["hits"] == calls
    verdict = results.json("compared")["verdict"]
    assert verdict.startswith("the module is loaded, and on: clear, hotplug, memmap. ")
    row = rows_by_function(results, "compared", "compared")[clearing_function(results)]
    assert row["serving"]
    assert min(row["before_ns"], row["now_ns"], row["ratio"], *row["expected"]) > 0


def test_exit_codes(results: Results) -> None:
    assert results["failing"].code == 7
    assert results["signalled"].code == 128 + 9
    assert results["timed"].code == 0
    assert "did you mean clear?" in results["misused"].err
    assert results["ended"].json["seconds"] < 3600
    # it may have begun to count by then
    assert results["early"].code in (Exit.OK, Exit.INTERRUPTED)


def test_what_it_says_where_it_cannot_count(results: Results) -> None:
    assert results["refused"].code == 0, results["refused"]
    lines = results["refused"].out.splitlines()
    assert [line.split()[0] for line in lines] == list(MESSAGES)
    for line in lines:
        assert MESSAGES[line.split()[0]] in line
    assert results["lock"].code == 0, results["lock"]
    assert results["locked"].code == Exit.ENVIRONMENT
    assert "lockdown (confidentiality) forbids" in results["locked"].err
    assert results["locked"].err.count("\n") == 1
    assert "a call is faster by: " in results["locked"].out


def test_nothing_is_left_of_it(results: Results) -> None:
    before = results["before"].out
    assert "theirs" in before
    for step in ("after", "after early", "after all"):
        assert results[step].out == before, step
    assert results["after compared"].out == results["loaded"].out
    assert results["unload"].code == 0


def test_a_killed_run_is_removed_by_the_next(results: Results) -> None:
    assert results["killed"].code == 0, results["killed"]
    assert int(results["killed"].out) > 12  # writes to tracefs, each a place to die


LIMIT = 0.01  # of the work of a program that faults huge pages as fast as it can
RUNS, FAULTS = 3, 64  # the least of the runs counts: timers tick in the guest, too
FASTEST = (
    f"for run in $(seq {RUNS}); do "
    f"bmmfault -f -n {FAULTS} -b 16 hugetlb 2048 write-first; done"
)


@pytest.mark.parametrize("kernel", series("7.3"))
def test_what_counting_costs(kernel: str) -> None:
    """In instructions: an instruction takes 2 ns of this guest's clock."""
    steps: list[Step] = [
        ("sh", f"{POOL}; {FASTEST}"),
        ("sh", FASTEST),
        ("worth", "-o", "/counted", "--", "sh", "-c", f"{{ {FASTEST}; }} >/ns"),
        ("sh", "cat /ns /counted"),
    ]
    machine = {"icount": True, "accel": "tcg"}
    _, plain, _, with_worth = guest.run_guest(
        kernel, steps, "init_on_alloc=0", **machine
    )
    before, now = (
        min(int(ns) for ns in re.findall(r" ns=(\d+)", one.out))
        for one in (plain, with_worth)
    )
    assert f'"calls": {RUNS * FAULTS},' in with_worth.out
    print(
        f"{kernel}: {(now - before) / FAULTS / 2:.0f} instructions a call, "
        f"{(now - before) / before:.2%}"
    )
    assert 0 < now - before < LIMIT * before, (before, now)
