# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench history``: what each kernel's arms are called."""

import pytest
from eventlib import events, steady

from bulkmm.native import history

ARMS = ("stock", "stock-again")


@pytest.mark.parametrize("order", [ARMS, ARMS[::-1]])
def test_the_oldest_has_its_control(order: tuple[str, ...]) -> None:
    """Whichever arm the seed has run first."""
    taken = {
        release: events({"thp-2m": {arm: steady(1000) for arm in order}})
        for release in ("6.1.5", "6.12.7")
    }
    assert [*history._arms(taken)] == ["6.1.5", "6.1.5-again", "6.12.7"]
