# SPDX-License-Identifier: GPL-2.0-only
"""What the command's tests share: a kernel of their own, and the command."""

from collections.abc import Callable, Iterator
from pathlib import Path

import fakekernel
import pytest
from commandlib import Command, Result
from servelib import Running, run_server, wait_until

from bulkmm import cli
from bulkmm.control.pools import TOTAL, Pool
from bulkmm.pool import reserve


@pytest.fixture
def kernel(tmp_path: Path) -> fakekernel.Fake:
    """Return a kernel without the module."""
    return fakekernel.make_kernel(tmp_path / "root")


@pytest.fixture
def loaded(kernel: fakekernel.Fake) -> fakekernel.Fake:
    """Return a kernel with the module."""
    return fakekernel.load_module(kernel)


@pytest.fixture
def change_totals(monkeypatch: pytest.MonkeyPatch) -> fakekernel.Change:
    """Return what has a node take other totals than are written to it."""
    write = Pool.write

    def change(node: int, take: Callable[[int], int]) -> None:
        def changed(self: Pool, name: str, value: int) -> None:
            is_total = name == TOTAL and self.node == node
            write(self, name, take(value) if is_total else value)

        monkeypatch.setattr(Pool, "write", changed)
        monkeypatch.setattr(reserve.Reserved, "take", lambda *_: ())

    return change


@pytest.fixture
def bulkmm(kernel: fakekernel.Fake, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return what runs a command on that kernel; never more than a line of errors."""

    def run(command: str, *words: str) -> Result:
        code = cli.main([command, *words, "--root", str(kernel.root)])
        output = capsys.readouterr()
        assert output.err.count("\n") <= 1, output.err
        assert "Traceback" not in output.err
        return Result(code, output.out, output.err.strip())

    return run


@pytest.fixture
def two(kernel: fakekernel.Fake) -> fakekernel.Fake:
    """Return a kernel of two nodes with memory."""
    fakekernel.make_pool(kernel, {0: (10, 6, 0), 1: (4, 4, 2)})
    return kernel


@pytest.fixture(scope="module")
def shared_server() -> Iterator[Running]:
    """Have a server of memory, without stock, for all tests of a file."""
    with run_server() as server:
        yield server


@pytest.fixture
def server(shared_server: Running) -> Iterator[Running]:
    """Return a server of memory that has none, nor has it after the test."""
    yield shared_server
    wait_until(shared_server.is_clean)
