# SPDX-License-Identifier: GPL-2.0-only
"""The command on stock kernels, with the module that they run."""

import re
from typing import Any

import guest
import pytest
from guest import Results, Step
from lablib import series
from prometheus_client.parser import text_string_to_metric_families

from bulkmm.control import requirements
from bulkmm.shell.errors import Exit
from lab.machine.kernels import SERIES

pytestmark = pytest.mark.vm

SYSFS = "/sys/kernel/bulkmm"
LAB = "/sys/kernel/debug/bulkmm_lab"
ND_PMEM = "/sys/bus/nd/drivers/nd_pmem"
HUGE = "/sys/kernel/mm/transparent_hugepage"
# paths, each with the first of its modes but off
PATHS = dict.fromkeys(("memmap", "prezero", "copy", "hotplug"), "on")
PATHS |= {"clear": "auto", "alloc": "auto", "vmap": "pte"}
# allocated by the kernel of a guest that is told not to clear twice
FAULT = "bmmfault -n 8 -b 8 thp 2048 write-first"
INSMOD = "; ".join(f"insmod /lib/modules/{name}.ko" for name in guest.PMEM)
# before 6.8 all sizes have one setting
FILES = f"{HUGE}/enabled {HUGE}/hugepages-2048kB/enabled"
MADVISE = f"for f in {FILES}; do [ ! -e $f ] || echo madvise >$f; done"
STEPS: dict[str, Step] = {
    "device": ("sh", f"{INSMOD}; until [ -e /dev/pmem0 ]; do sleep 0.1; done"),
    # nobody else's pages are counted: Python's own may be huge ones otherwise
    "huge when asked": ("sh", MADVISE),
    "doctor without": ("doctor", "--json"),
    "status without": ("status", "--json"),
    "on without": ("on", "clear", "--json"),
    "taken": ("sh", f"insmod /lib/modules/bulkmm_lab.ko && echo 1 >{LAB}/squat"),
    "who": ("sh", "cat /sys/kernel/tracing/enabled_functions"),
    "doctor taken": ("doctor", "--json"),
    "load": ("sh", "insmod /lib/modules/bulkmm.ko"),
    "status taken": ("status", "memmap", "--json"),
    "on taken": ("on", "memmap", "--json"),
    "given back": ("sh", f"echo 0 >{LAB}/squat"),
    "dry": ("on", "clear", "--dry-run", "--json"),
    "status loaded": ("status", "--json"),
    **{f"on {path}": ("on", path, "--json") for path in PATHS},
    "status on": ("status", "--json"),
    "doctor on": ("doctor", "--json"),
    "bind": (
        "sh",
        f"cd {ND_PMEM} && echo namespace0.0 >unbind && echo namespace0.0 >bind",
    ),
    "doctor bound": ("doctor", "--json"),
    "folios": ("sh", FAULT),
    "fault": ("sh", f"(sleep 1; {FAULT}; sleep 1; {FAULT}) >/dev/null 2>&1 &"),
    "watch": ("watch", "--trace", "--json", "--count", "1", "--interval", "6"),
    "instances": ("sh", "ls /sys/kernel/tracing/instances"),
    "watch lines": ("watch", "--count", "1", "--interval", "0.1"),
    "status used": ("status", "--json"),
    "metrics": ("status", "--format", "prometheus"),
    "settings": ("tune", "--json"),
    "tune": ("tune", "clear.latency_us=500", "clear.backend_cached=plain", "--json"),
    "tuned": ("sh", f"cat {SYSFS}/clear/latency_us {SYSFS}/clear/backend_cached"),
    "fastest": ("tune", "clear.backend_cached=fastest"),
    "out of range": ("tune", "clear.latency_us=2000000", "--json"),
    "no backend": ("tune", "memmap.backend=rm"),
    "parameter": ("tune", "memmap_min_pages=65536"),
    "stopped while on": ("sh", "echo 0 >/proc/sys/kernel/ftrace_enabled"),
    "in use": ("sh", "rmmod bulkmm"),
    **{f"off {path}": ("off", path, "--json") for path in PATHS},
    "stopped": ("sh", "echo 0 >/proc/sys/kernel/ftrace_enabled"),
    "doctor stopped": ("doctor", "--json"),
    "started": ("sh", "echo 1 >/proc/sys/kernel/ftrace_enabled"),
    "on once more": ("on", "memmap"),
    "off all": ("off", "--json"),
    "unload": ("sh", "rmmod bulkmm bulkmm_lab"),
    "status gone": ("status",),
}


@pytest.fixture(scope="module", params=series("7.3"))
def results(request: pytest.FixtureRequest) -> Results:
    """Do all steps on a kernel."""
    words = "init_on_alloc=0" if request.param != SERIES[0] else "init_on_alloc=1"
    # the least that memmap serves
    machine = {"device": "512M", "memory": 1536}
    return guest.run_steps(request.param, STEPS, words, **machine)


def test_without_the_module(results: Results) -> None:
    status = results.json("status without", Exit.VERDICT)
    assert not status["loaded"]
    assert status["kernel"]["release"].startswith(results.kernel)
    case = "twice" if results.kernel == SERIES[0] else "once"
    assert status["kernel"]["zeroing"] == case
    assert (
        "not loaded" in results.json("on without", Exit.ENVIRONMENT)["error"]["message"]
    )
    assert results["status gone"].code == Exit.VERDICT


def find_unserved(results: Results) -> dict[str, str]:
    """Return the paths that the kernel has work for, with a function that it lacks."""
    return (
        {"prezero": "alloc_hugetlb_folio_nodemask"} if results.kernel == "6.1" else {}
    )


def read_doctor(results: Results, step: str) -> dict[str, Any]:
    """Return what doctor said in a step in which nothing else is wrong."""
    return results.json(step, Exit.VERDICT if find_unserved(results) else Exit.OK)


def read_verdicts(results: Results, step: str) -> dict[str, Any]:
    """Return what it said of each path that can attach."""
    paths = {path["name"]: path for path in read_doctor(results, step)["paths"]}
    failures = {name for name in paths if paths[name]["verdict"] == "would not attach"}
    assert failures == {*find_unserved(results)}
    return {name: paths[name] for name in paths if name not in failures}


def test_doctor_foresees_what_attaches(results: Results) -> None:
    foreseen = read_verdicts(results, "doctor without")
    attached = results.paths("status on")
    unserved = "cannot serve" if results.kernel == SERIES[0] else "not needed"
    for name in foreseen:
        verdict = foreseen[name]["verdict"]
        if verdict == unserved:
            assert name == "alloc"
            continue
        assert verdict == "would attach"
        assert attached[name]["hooks"][0]["attached"]
        lacking = {why.split()[1].rstrip(":") for why in foreseen[name]["reasons"]}
        missed = {h["symbol"] for h in attached[name]["hooks"] if not h["attached"]}
        assert lacking == missed
    on = read_verdicts(results, "doctor on").values()
    assert {path["verdict"] for path in on} <= {"attached", unserved}
    states = {c["state"] for c in read_doctor(results, "doctor without")["checks"]}
    assert "unknown" not in states


def test_a_device_that_was_up_before_the_module(results: Results) -> None:
    assert results["device"].code == results["bind"].code == 0, results["device"]
    messages = [
        [
            c["says"]
            for c in read_doctor(results, name)["checks"]
            if c["name"] == "device memory"
        ]
        for name in ("doctor without", "doctor on", "doctor bound")
    ]
    late = "struct pages of 512 MiB were built"
    assert messages == [
        [f"{late} without bulkmm"],
        [f"{late} before the module was loaded or memmap was on"],
        [],
    ]


def test_a_function_that_is_taken(results: Results) -> None:
    assert results["taken"].code == 0, results["taken"]
    paths = results.paths("doctor taken", Exit.VERDICT)
    assert paths["memmap"]["verdict"] == "would not attach", results["who"].out
    assert "the direct trampoline bmm_squat_trampoline" in paths["memmap"]["reasons"][0]
    assert paths["clear"]["verdict"] == "would attach"
    (hook,) = results.paths("status taken")["memmap"]["hooks"]
    assert not hook["attached"]
    message = results.json("on taken", Exit.ENVIRONMENT)["error"]["message"]
    assert "memmap_init_zone_device" in message
    assert hook["why"] in message
    assert read_verdicts(results, "doctor on")["memmap"]["verdict"] == "attached"


def test_switching(results: Results) -> None:
    assert results.paths("status loaded")["clear"]["mode"] == "off"  # the dry run's
    paths = results.paths("status on")
    assert set(paths) == set(PATHS)
    for path, mode in PATHS.items():
        if results[f"on {path}"].code == Exit.ENVIRONMENT:
            lacks = {"alloc": "clear_highpages_kasan_tagged", **find_unserved(results)}
            assert lacks[path] in results[f"on {path}"].out
            assert ": the kernel has no such function" in results[f"on {path}"].out
            continue
        (change,) = results.json(f"on {path}")["changes"]
        assert (change["after"], paths[path]["mode"]) == (mode, mode)
        (change,) = results.json(f"off {path}")["changes"]
        assert change["before"] == mode


def test_watch_sees_requests_and_leaves_nothing(results: Results) -> None:
    sample = results.json("watch")
    clear = results.paths("watch")["clear"]
    assert results["instances"].out.strip() == ""
    assert clear["requests_per_s"] > 0
    assert clear["latency"]["n"] == round(clear["requests_per_s"] * sample["seconds"])
    assert clear["latency"]["median_ns"] <= clear["latency"]["max_ns"]
    assert re.search(r" clear mode auto, requests/s 0.00", results["watch lines"].out)


def test_counters_and_metrics(results: Results) -> None:
    clear = results.paths("status used")["clear"]
    assert clear["counters"]["hits"] == 24
    assert clear["counters"]["bytes"] == 24 << 21
    metrics = list(text_string_to_metric_families(results["metrics"].out))
    samples = {
        (sample.name, sample.labels.get("path")): sample.value
        for metric in metrics
        for sample in metric.samples
    }
    assert samples["bulkmm_requests_total", "clear"] == 24
    assert samples["bulkmm_loaded", None] == 1


def test_tuning(results: Results) -> None:
    keys = {one["key"] for one in results.json("settings")["settings"]}
    paths = requirements.read_table("x86_64").paths
    assert keys == {key for path in paths for key in path.settings}
    assert len(results.json("tune")["changes"]) == 2
    assert results["tuned"].out.startswith("500\n")
    assert re.search(r"\[plain[]=]", results["tuned"].out)
    assert results["fastest"].code == results["parameter"].code == 0
    message = results.json("out of range", Exit.ENVIRONMENT)["error"]["message"]
    assert "the kernel refuses it" in message
    assert results["no backend"].code == Exit.USAGE


def test_a_path_that_is_on_holds_the_module(results: Results) -> None:
    assert results["stopped while on"].code
    assert results["in use"].code
    assert len(results.json("off all")["changes"]) == len(PATHS)
    assert results["unload"].code == 0


def test_ftrace_switched_off(results: Results) -> None:
    if results["stopped"].code:  # later kernels do not let it be switched off
        assert results.kernel != SERIES[0]
        assert results["doctor stopped"].code == Exit.OK
        return
    document = results.json("doctor stopped", Exit.VERDICT)
    no = [check["name"] for check in document["checks"] if check["state"] == "no"]
    assert no == ["kernel.ftrace_enabled"]
