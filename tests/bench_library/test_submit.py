# SPDX-License-Identifier: GPL-2.0-only
"""What a result that is sent to the project says, and what it does not."""

from pathlib import Path

import made
import pytest
import result_files
import whole_operations
from msgspec.structs import replace

from bulkmm.results import conditions, submit
from bulkmm.results.model import Document
from bulkmm.shell.errors import BulkmmError

LARGEST = 1 << 20  # bytes of a CPU's result, in a repository that is cloned
SECRET = ("jane", "build-7", "/home", "root=UUID", "SN0815", "Acme")


def owned() -> Document:
    """Return a result that tells more than it should."""
    document = made.kernel("6.12.1")
    cpu = {**document.machine["cpu"], "hypervisor": "Acme Cloud", "serial": "SN0815"}
    machine = document.machine | {
        "cpu": cpu,
        "host": "build-7",
        "kernel": "6.12.107+deb13-cloud-amd64",
        "memory_bytes": 25276502016,
        "accelerator": "native",
    }
    run = document.run | {
        "scenario": "all",
        "processes": 6,
        "memmap.rounds": 5,
        "module": "/home/jane/bulkmm.ko",
        "cmdline": "root=UUID=0815",
        "argv": ["bench", "kernel", "--kernel", "/home/jane/vmlinuz"],
        "host_kernel": "6.18.3-jane-build-7",
    }
    return replace(document, machine=machine, run=run)


def test_nothing_tells_whose_machine_it_is() -> None:
    before = owned()
    submission = submit.anonymise_document(before)
    text = submission.to_json()
    assert not [word for word in SECRET if word in text]
    assert all(word in before.to_json() for word in SECRET)
    assert submission.machine["kernel"] == "6.12.107+deb13-cloud-amd64"
    assert submission.run["host_kernel"] == "6.18.3"
    assert submission.machine["memory_bytes"] == 24 << 30
    assert submission.run["memmap.rounds"] == 5
    assert (submission.results, submission.ratios) == (before.results, before.ratios)


@pytest.mark.parametrize("file", sorted(result_files.RESULTS.glob("*/*.json")), ids=str)
def test_results_takes_what_was_submitted(file: Path, tmp_path: Path) -> None:
    sent_file = tmp_path / "sent.json"
    submit.anonymise_document(Document.read(file)).write(sent_file)
    to = result_files.take_result(sent_file, tmp_path)
    assert to.relative_to(tmp_path) == file.relative_to(result_files.RESULTS)
    assert file.stat().st_size < LARGEST


@pytest.mark.parametrize(
    "file", sorted(result_files.RESULTS.glob("guest-*.json")), ids=str
)
def test_results_takes_what_a_guest_counted(file: Path, tmp_path: Path) -> None:
    """Nothing of the machine that emulated it; the bind contains the function."""
    document = Document.read(file)
    document.machine |= owned().machine | {"accelerator": "TCG"}
    document.run["argv"] = ["/home/jane"]
    sent_file = tmp_path / "sent.json"
    document.write(sent_file)
    to = result_files.take_result(sent_file, tmp_path)
    assert to.name == file.name
    assert not [word for word in SECRET if word in to.read_text()]
    assert 0.5 < whole_operations.compute_share(Document.read(to)) < 1


def test_warnings_say_what_to_do() -> None:
    document = owned()
    run = document.run | {"processes": 3, "other": 0.6, "steal": 0.05}
    messages = conditions.list_warnings(replace(document, run=run))
    assert messages[0].startswith("60% of the CPU time was for other work: close")
    assert "n = 3, 6 needed for an interval" in messages[2]
    # what had the CPU before is none, such as the build that a demo begins with
    quiet = replace(document, run={"load": [7.5, 1], "other": 0.02})
    assert not conditions.list_warnings(quiet)
    # equal variants of a quiet machine differ, too: no other work is to blame
    quiet.ratios = [replace(ratio, unstable=True) for ratio in document.ratios]
    [message] = conditions.list_warnings(quiet)
    assert message.endswith("two equal variants differ by more; run more processes")


def test_too_few_processes_are_not_taken(tmp_path: Path) -> None:
    document = owned()
    sent_file = tmp_path / "sent.json"
    replace(document, run=document.run | {"processes": 3}).write(sent_file)
    with pytest.raises(BulkmmError, match="n = 3, 6 needed for an interval"):
        result_files.take_result(sent_file, tmp_path)


def test_only_native_results_of_debians_kernels() -> None:
    document = owned()
    arm, run = document.results[0], document.run | {"scenario": "history"}
    arms = [replace(arm, arm="6.1.0-56-cloud-amd64", control="again")]
    history = replace(document, run=run, results=arms)
    assert submit.file_name(submit.anonymise_document(history)) == "history.json"
    emulated = document.machine | {"accelerator": "TCG"}
    for change, message in (
        ({"machine": emulated}, "natively"),
        (
            {"run": run | {"against": "7.3.4+deb13-jane.0815ab-amd64"}},
            "6.12.107.*-amd64 is no kernel that the lab builds",
        ),
        (
            {"results": [replace(arm, arm="6.18.3-jane-build-7")]},
            "jane-build-7 is no kernel of Debian",
        ),
    ):
        with pytest.raises(BulkmmError, match=message):
            submit.anonymise_document(replace(history, **change))


def test_the_patches_of_the_project_are_taken() -> None:
    document = owned()
    release = "7.3.4+deb13-{}.0815ab-amd64".format
    machine = document.machine | {"kernel": release("base")}
    run = document.run | {"against": release("patched")}
    submission = submit.anonymise_document(replace(document, machine=machine, run=run))
    assert submission.machine["kernel"] == release("base")
    assert submission.run["against"] == release("patched")
    assert submit.file_name(submission) == "patched-7.3.json"
    plain = replace(submission, run=run | {"returns": submit.PLAIN_RETURNS})
    assert submit.file_name(plain) == "patched-7.3-plain.json"
    run["against"] = release("jane")
    with pytest.raises(BulkmmError, match="is no kernel that the lab builds"):
        submit.anonymise_document(replace(document, machine=machine, run=run))


def test_a_result_stays_within_results(tmp_path: Path) -> None:
    document = owned()
    cpu = document.machine["cpu"] | {"vendor": "/../Acme"}
    sent_file = tmp_path / "sent.json"
    replace(document, machine=document.machine | {"cpu": cpu}).write(sent_file)
    with pytest.raises(BulkmmError, match="no name of a folder"):
        result_files.take_result(sent_file, tmp_path / "results")
