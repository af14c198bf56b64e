# SPDX-License-Identifier: GPL-2.0-only
"""KVM: tried once per boot of the host, and again where it is asked for."""

from pathlib import Path

import pytest

from bulkmm.errors import BulkmmError
from bulkmm.lab.machine import accel
from bulkmm.lab.machine.kernels import Kernel
from bulkmm.lab.machine.root import Root
from bulkmm.lab.progress import Progress


def test_what_was_wrong_is_tried_again_if_kvm_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, tried = Kernel(Root(tmp_path), "7.3.4-cloud-amd64"), []
    kernel.root.var.mkdir(parents=True)

    def probe(*_: object) -> str:
        tried.append(1)
        return "" if len(tried) > 2 else "busy"

    def chosen(wish: str) -> str:
        return accel.choose(wish, kernel, tmp_path, Progress())

    monkeypatch.setattr(accel, "DEVICE", tmp_path)
    monkeypatch.setattr(accel, "_probe", probe)
    assert [chosen("auto"), chosen("auto"), len(tried)] == ["tcg", "tcg", 1]
    with pytest.raises(BulkmmError, match="busy"):
        chosen("kvm")
    assert [chosen("kvm"), chosen("kvm"), chosen("auto")] == ["kvm"] * 3
    assert len(tried) == 3
