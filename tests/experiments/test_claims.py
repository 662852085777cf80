"""Every claim ends as expected on its small sizes, and a claim is judged by its interval alone."""

import math

import pytest

from transformer_flows.experiments.claims import Claim, Measurement
from transformer_flows.experiments.verify import select


@pytest.mark.slow
@pytest.mark.parametrize("check", select(""), ids=lambda check: check.name)
def test_the_claim_ends_as_expected(check):
    claim = check(quick=True)
    assert claim.verdict == ("contradicted" if check.contradicted else "holds"), claim


@pytest.mark.parametrize(
    ("measured", "fault", "verdict"),
    [(0.9, "", "holds"), (1.1, "", "holds"), (1.11, "", "fails"), (math.nan, "", "fails"), (1.0, "raised", "fails")],
)
def test_verdict(measured, fault, verdict):
    assert Claim("name", "paper", "words", 1.0, measured, 0.9, 1.1, fault=fault).verdict == verdict


@pytest.mark.parametrize(
    ("measured", "fault", "verdict"),
    [
        (1.5, "", "contradicted"),
        (0.5, "", "contradicted"),
        (1.0, "", "fails"),
        (math.nan, "", "fails"),
        (1.5, "!", "fails"),
    ],
)
def test_verdict_on_a_statement_known_to_be_contradicted(measured, fault, verdict):
    claim = Claim("name", "paper", "words", 1.0, measured, 0.9, 1.1, fault=fault, contradicted="evidence")
    assert claim.verdict == verdict
    assert claim.as_expected == (verdict == "contradicted")


def test_the_evidence_is_registered_with_the_statement(monkeypatch):
    monkeypatch.setattr("transformer_flows.experiments.claims.CLAIMS", {})
    from transformer_flows.experiments import claims

    @claims.claim("paper", "words", contradicted="evidence")
    def statement(quick):
        return Measurement(1.0, 2.0, 0.9, 1.1)

    checked = claims.CLAIMS["statement"](quick=True)
    assert (checked.verdict, checked.contradicted) == ("contradicted", "evidence")
