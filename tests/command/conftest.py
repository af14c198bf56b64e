# SPDX-License-Identifier: GPL-2.0-only
"""What the command's tests share: a kernel of their own, and the command."""

from pathlib import Path

import fakekernel
import pytest
from commandlib import Command, Done

from bulkmm import cli


@pytest.fixture
def kernel(tmp_path: Path) -> fakekernel.Fake:
    """Return a kernel without the module."""
    return fakekernel.kernel(tmp_path / "root")


@pytest.fixture
def loaded(kernel: fakekernel.Fake) -> fakekernel.Fake:
    """Return a kernel with the module."""
    return fakekernel.load(kernel)


@pytest.fixture
def bulkmm(kernel: fakekernel.Fake, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return what runs a command on that kernel; never more than a line of errors."""

    def run(command: str, *words: str) -> Done:
        code = cli.main([command, *words, "--root", str(kernel.root)])
        said = capsys.readouterr()
        assert said.err.count("\n") <= 1, said.err
        assert "Traceback" not in said.err
        return Done(code, said.out, said.err.strip())

    return run
