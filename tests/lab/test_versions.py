# SPDX-License-Identifier: GPL-2.0-only
"""lab/versions.txt: preferred while the archive has them, and replaced with a line."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from lablib import lock_root

from bulkmm.shell.progress import Progress
from lab import paths
from lab.machine import kernels, root, versions, vm
from lab.machine.arch import ARCHES, X86_64

UNAVAILABLE = "the archive no longer has it: "


@pytest.fixture
def pinned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, str], None]:
    """Return what pins another version of one line."""

    def pin(name: str, version: str) -> None:
        lines = paths.VERSIONS.read_text(encoding="utf-8").splitlines()
        new_lines = [
            f"{name} {version}" if li.split()[:1] == [name] else li for li in lines
        ]
        file = tmp_path / "versions.txt"
        file.write_text("\n".join(new_lines), encoding="utf-8")
        monkeypatch.setattr(versions, "VERSIONS", file)

    return pin


def test_every_kernel_has_a_pin_and_no_line_an_address() -> None:
    for arch in ARCHES:
        for name in arch.series:
            release = versions.find_release(name, arch)
            assert kernels.RELEASE.fullmatch(release)
            assert release.startswith(f"{name}.")
            assert versions.find_release(release, arch) == ""
    assert not {"/", "@"} & set("".join(versions.read_versions().values()))


@pytest.mark.lab
@pytest.mark.release
def test_a_kernel_that_the_archive_lost(
    pinned: Callable[[str, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    progress = Progress()
    with lock_root() as lab_root:
        usual = kernels.fetch_kernel(lab_root, "7.3", progress).release
        capsys.readouterr()
        pinned("linux-7.3", "7.3.0+deb13")
        for _again in range(2):
            kernel = kernels.fetch_kernel(lab_root, "7.3", progress)
            assert kernel.release == kernels.find_newest(lab_root, "7.3", X86_64)
            assert kernel.image.is_file()
            stderr = capsys.readouterr().err
            wanted = "kernel 7.3.0+deb13-cloud-amd64 is pinned, but"
            assert f"{wanted} {UNAVAILABLE}{kernel.release}" in stderr
        pinned("linux-7.3", usual.partition("-")[0])
        assert kernels.fetch_kernel(lab_root, "7.3", progress).release == usual
        assert UNAVAILABLE not in capsys.readouterr().err


@pytest.mark.lab
def test_a_package_that_the_archive_lost(pinned: Callable[[str, str], None]) -> None:
    """The others stay pinned, and apt takes what the archive has of it."""
    with lock_root() as lab_root:
        pinned("cpio", "0-1")  # from here on another root would be asked for
        with vm.run_directory(lab_root) as place:
            parts = place / "etc/apt/preferences.d"
            parts.mkdir(parents=True)
            lab_root.run(
                ["sh", "-c", versions.make_hook(), "sh", lab_root.inner(place)]
            )
            where = f"-oDir::Etc::PreferencesParts={lab_root.inner(parts)}"
            policy = lab_root.run(["apt-cache", where, "policy"])
            has = lab_root.run(root.INSTALLED)
    installed = dict(line.split() for line in has.splitlines())
    assert f"cpio 0-1 ({installed['cpio']} instead)" in versions.list_mismatches(has)
    effective = {
        name for name, one in versions.read_packages().items() if installed[name] == one
    }
    assert "cpio" not in effective
    assert effective == set(re.findall(r"(\S+) -> \S+ with priority 990", policy))
