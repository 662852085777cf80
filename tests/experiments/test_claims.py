"""Every claim holds on its small sizes, and a claim is judged by its interval alone."""

import math

import pytest

from transformer_flows.experiments.claims import Claim
from transformer_flows.experiments.verify import select


@pytest.mark.slow
@pytest.mark.parametrize("check", select(""), ids=lambda check: check.name)
def test_the_claim_holds(check):
    claim = check(quick=True)
    assert claim.verdict == "holds", claim


@pytest.mark.parametrize(
    ("measured", "fault", "verdict"),
    [(0.9, "", "holds"), (1.1, "", "holds"), (1.11, "", "fails"), (math.nan, "", "fails"), (1.0, "raised", "fails")],
)
def test_verdict(measured, fault, verdict):
    assert Claim("name", "paper", "words", 1.0, measured, 0.9, 1.1, fault=fault).verdict == verdict
