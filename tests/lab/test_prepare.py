# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm lab prepare``: a run after it makes nothing any more."""

from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import NoReturn

import pytest

from bulkmm import cli
from bulkmm.shell.errors import Exit
from bulkmm.shell.progress import Progress
from lab import paths, run
from lab.commands import prepare
from lab.machine import build, cached, kernels
from lab.machine.arch import ARCHES, NAMES

SERIES = [(on, kernel) for on in ARCHES for kernel in on.series]


class Idle(Progress):
    """Fails at what takes a step to make."""

    def step(self, text: str) -> Iterator[None]:  # type: ignore[override]
        """Say what was not prepared."""
        return self._fail(text)

    def _fail(self, text: str) -> NoReturn:
        pytest.fail(f"a run would have to do this: {text}")


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (("6.12",), Exit.OK, {"6.12": ["x86_64"]}),
        (("7.3", "debug"), Exit.OK, {"7.3": [*NAMES], "debug": ["x86_64"]}),
        (("7.3", "5.10"), Exit.USAGE, {}),
    ],
)
def test_a_kernel_of_some_architectures(
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    code: Exit,
    expected: dict[str, list[str]],
) -> None:
    arches: dict[str, list[str]] = {}

    def requested(kernel: kernels.Choice, _defines: list[str]) -> list[str]:
        arches.setdefault(kernel.name, []).append(kernel.arch.name)
        return [kernel.name]

    ready = SimpleNamespace(kernel=SimpleNamespace(release="7.3.4"))
    monkeypatch.setattr(prepare, "list_requests", requested)
    monkeypatch.setattr(run, "prepare_run", lambda *_: ready)
    monkeypatch.setattr(cached, "need_root", lambda: None)
    monkeypatch.setattr(cached, "lock_with_kernels", lambda *_: nullcontext())
    options = [word for name in words for word in ("--kernel", name)]
    assert cli.main(["lab", "prepare", *options]) == code
    assert arches == expected


@pytest.mark.lab
@pytest.mark.release
@pytest.mark.timeout(3600)
def test_a_run_finds_everything_made() -> None:
    """What a bare "lab prepare" makes: every series of the list, every scenario."""
    assert cli.main(["lab", "prepare"]) == Exit.OK
    with paths.lock_cache(Progress()) as cache:
        for on, kernel in SERIES:
            for request in prepare.list_requests(kernels.find_kernel(kernel, on), []):
                ready = run.prepare_run(cache, request, Idle())
                machine = request.scenario.machine
                assert bool(ready.disk) is machine.disk
                modules = len(ready.modules) - len(build.PRODUCTS)
                assert modules == bool(machine.upstream)
                assert bool(ready.over) is bool(machine.suite or machine.disk)
                assert all(path.is_dir() for path in ready.over)
