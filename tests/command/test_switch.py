# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm on``, ``off``, ``tune``: only what was asked for is written, or nothing."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from commandlib import Command
from fakekernel import Fake

from bulkmm.control.system_files import SystemFiles
from bulkmm.shell.errors import Exit

HOME = "/sys/kernel/bulkmm"
PARAMETERS = "/sys/module/bulkmm/parameters"


@pytest.mark.parametrize(
    ("words", "file", "writes"),
    [
        ("on clear", f"{HOME}/clear/mode", "auto"),
        ("on clear streaming", f"{HOME}/clear/mode", "streaming"),
        ("off memmap", f"{HOME}/memmap/mode", "off"),
        ("tune clear.latency_us=0x10", f"{HOME}/clear/latency_us", "0x10"),
        ("tune memmap.backend=fastest", f"{HOME}/memmap/backend", "fastest"),
        ("tune memmap.verify=once", f"{HOME}/memmap/verify", "once"),
        ("tune memmap_min_pages=1", f"{PARAMETERS}/memmap_min_pages", "1"),
    ],
)
def test_one_file_is_written(
    loaded: Fake, bulkmm: Command, words: str, file: str, writes: str
) -> None:
    before = loaded.files()
    dry = bulkmm(*words.split(), "--dry-run", "--json")
    assert (dry.code, dry.json["dry_run"]) == (Exit.OK, True)
    output = bulkmm(*words.split(), "--dry-run").out
    assert f"would write {writes} to {file}" in output
    assert loaded.files() == before
    result = bulkmm(*words.split(), "--json")
    assert result.code == Exit.OK
    (change,) = result.json["changes"]
    assert (change["file"], change["after"]) == (file, writes)
    update = {loaded.root / file.lstrip("/"): f"{writes}\n"}
    assert loaded.files() == before | update


def test_all_off_is_one_write(loaded: Fake, bulkmm: Command) -> None:
    before = loaded.files()
    dry = bulkmm("off", "--dry-run", "--json")
    assert dry.code == Exit.OK
    assert loaded.files() == before
    result = bulkmm("off", "--json")
    assert result.code == Exit.OK
    assert {change["after"] for change in result.json["changes"]} == {"off"}
    assert len(result.json["changes"]) == len(dry.json["changes"]) > 2
    assert loaded.files() == before | {loaded.root / "sys/kernel/bulkmm/off": "1\n"}


@pytest.mark.usefixtures("loaded")
def test_all_that_can_be_tuned_is_listed(bulkmm: Command) -> None:
    entries = bulkmm("tune", "--json").json["settings"]
    settings = {one["key"]: (one["value"], one["choices"]) for one in entries}
    assert settings == {
        "clear.backend_cached": ("fastest", ["fastest", "generic", "plain", "rep-b"]),
        "clear.backend_streaming": ("movnti", ["fastest", "generic", "movnti"]),
        "clear.latency_us": ("1000", []),
        "clear.min_pages": ("16", []),
        "memmap.backend": ("fastest", ["fastest", "generic", "movdir64b", "movnti"]),
        "memmap.verify": ("off", ["off", "once", "always"]),
        "memmap_min_pages": ("32768", []),
    }
    output = bulkmm("tune").out
    assert all(key in output for key in settings)


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize(
    ("code", "words", "message"),
    [
        (errno.EACCES, "on clear", "clear.mode cannot be set to auto: Permission "),
        (errno.EBUSY, "on later", "second_function: somebody has it"),
        (errno.EINVAL, "tune clear.min_pages=9", "the kernel refuses it"),
        (errno.ENOENT, "on later", "second_function: somebody has it"),
        (errno.EIO, "off memmap", "Input/output error"),
        (errno.EBUSY, "off memmap", "memmap_init_zone_device: attached"),
        (errno.EBUSY, "off", "not every path is unhooked: "),
        (errno.EINPROGRESS, "off memmap", "off, but still detaching"),
    ],
)
def test_the_kernel_refuses(
    bulkmm: Command, code: int, words: str, message: str
) -> None:
    def refuse(*_words: Any) -> None:
        raise OSError(code, os.strerror(code))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SystemFiles, "write", refuse)
        result = bulkmm(*words.split(), "--json")
    assert result.code == Exit.ENVIRONMENT
    assert message in result.json["error"]["message"]


def test_it_goes_away_while_it_is_switched(loaded: Fake, bulkmm: Command) -> None:
    def unload(root: SystemFiles, name: str, _text: str) -> None:
        root.at(name).unlink()
        raise FileNotFoundError(errno.ENOENT, "no such file")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SystemFiles, "write", unload)
        result = bulkmm("off", "clear")
    assert result.code == Exit.ENVIRONMENT
    assert "was the module unloaded?" in result.err
    assert loaded.root.is_dir()


def test_what_was_changed_before_a_refusal_is_said(
    loaded: Fake, bulkmm: Command
) -> None:
    """A file that is a full device stands for one that the kernel refuses."""
    pairs = ("clear.latency_us=5", "clear.min_pages=9")
    real = SystemFiles.write

    def write(root: SystemFiles, name: str, text: str) -> None:
        if name == f"{HOME}/clear/min_pages":
            raise OSError(errno.ERANGE, "out of range")
        real(root, name, text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SystemFiles, "write", write)
        result = bulkmm("tune", *pairs)
    assert result.code == Exit.ENVIRONMENT
    assert result.err.endswith("; clear.latency_us is changed")
    assert loaded.read(f"{HOME}/clear/latency_us") == "5"


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        SystemFiles(tmp_path).write("mode", "on")
    assert list(tmp_path.iterdir()) == []
