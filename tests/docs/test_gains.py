# SPDX-License-Identifier: GPL-2.0-only
"""What the patches gain, as docs/upstream.md has it."""

import re

import made
import patch_tables
import pytest

from bulkmm.report import output, page, patched
from bulkmm.results.model import Document
from bulkmm.results.result_tables import Show
from lab.machine import kernel_kinds

BASE, PATCHED = "7.3.4+deb13-base.123456-amd64", "7.3.4+deb13-patched.123456-amd64"


@pytest.fixture
def document() -> Document:
    """Return a result: 100 ms without, 25 with; the module takes 24, the limit 20."""
    times = {"against": 25, "against-again": 25, "kernel": 100, "bulkmm": 24}
    times |= {"template-copy": 60, "template-movnti": 30, "limit": 20}
    arms = [made.arm("pmem-fsdax-100g", name, ms) for name, ms in times.items()]
    pairs = [("against", name) for name in times if name != "against"]
    result = made.document(arms, pairs)
    result.machine["kernel"] = BASE
    result.run |= {"processes": 9, "picks": {}, "against": PATCHED}
    result.run["returns"] = "srso_alias_return_thunk"
    return result


def near(*values: float) -> list[float]:
    """Return what samples with noise come near."""
    return pytest.approx(list(values), rel=0.03)


def test_a_row_is_the_gain_and_the_shares_of_others(document: Document) -> None:
    table = patched.make_table(document)
    assert table.headings[0] == "Linux 7.3, Safe RET"
    ((scenario, times, gain, *shares),) = table.rows
    assert scenario == "pmem-fsdax-100g"
    assert [float(x) for x in re.findall(r"[\d.]+", times)] == near(100, 25)
    middle, low, high = (float(x) for x in re.findall(r"[\d.]+", gain))
    assert [middle] == near(4)
    assert low < middle < high
    # of the published methods, the faster
    assert [float(share) for share in shares] == near(30 / 25, 24 / 25, 20 / 25)


def test_a_result_of_patches_is_shown_by_their_gains(
    document: Document, capsys: pytest.CaptureFixture[str]
) -> None:
    """And no other is; rows relative to the patched kernel are on demand."""
    document.machine["cpu"]["model"] = "An & Other"
    title = "An & Other (family 25, model 1), Linux 7.3"
    text = output.format_results([document], Show())
    assert title in text
    assert PATCHED in text
    assert "template-copy" not in text
    text = output.format_results([document], Show(all_rows=True))
    assert text.index("template-copy") < text.index(title)
    html = page.render_html([document], ["gains"], "t")
    assert html.index("base → patched") < html.index("template-copy")
    assert "1 of 1 faster than the kernel without the patches" in html
    assert "kernel of --against" not in html.partition("<main")[0]
    two = output.format_results([document, document], Show())
    assert two.count(f"\n\n| {title}") == 1
    kasan = PATCHED.replace("patched", "patched-kasan")
    older = PATCHED.replace("patched", "patched-6.12").replace("7.3", "6.12", 1)
    for release in (BASE, kasan, older, "7.3-patched-by-hand"):
        document.run["against"] = release
        output.print_results([document, made.kernel()], Show())
        assert "base → patched" not in capsys.readouterr().out


def test_the_page_has_each_cpu(document: Document) -> None:
    marks = "<!-- generated: begin -->\nold\n<!-- generated: end -->\n"
    text = patch_tables.update_upstream(
        marks, {"one": {"patched-7.3": document}, "two": {}}
    )
    model = document.machine["cpu"]["model"]
    assert text.count("### ") == 1
    assert f"### {model}" in text
    assert "old" not in text


def test_a_forced_mode_of_the_module_is_not_the_module(document: Document) -> None:
    forced = made.arm("pmem-fsdax-100g", "bulkmm-streaming", 10)
    document.results.append(forced)
    ((*_, module, _),) = patched.make_table(document).rows
    assert [float(module)] == near(24 / 25)


def test_changed_patches_are_told(document: Document) -> None:
    kind = kernel_kinds.find_kind("patched")
    assert kind
    note = f"have changed since {PATCHED}."
    text = " ".join(patch_tables.make_gains([document]))
    assert text.index(note) < text.index("| pmem-fsdax-100g")
    assert "predictors were not reset" in text
    document.run |= {"against": kind.release("7.3.4+deb13"), "predictors": "reset"}
    text = " ".join(patch_tables.make_gains([document]))
    assert "changed" not in text
    assert "reset" not in text
