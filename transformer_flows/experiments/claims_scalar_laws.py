"""Claims about tokens at equal angles (arXiv:2312.10794)."""

import jax
import numpy as np

from .. import theory
from .claims import Measurement, claim
from .equiangular import Equiangular
from .runner import compute
from .scalar_law import follow

SOURCE = "arXiv:2312.10794"
TOLERANCE = 1e-6
RECORDS = 61  # the same for all claims, which then share compiled code


@claim(SOURCE, "softmax attention: equiangular tokens follow the scalar law (largest error of the cosine)")
def equiangular_softmax(quick: bool) -> Measurement:
    return _largest_error(_equiangular("softmax", quick))


@claim(SOURCE, "unnormalised attention: equiangular tokens follow the scalar law (largest error of the cosine)")
def equiangular_unnormalised(quick: bool) -> Measurement:
    return _largest_error(_equiangular("unnormalised", quick))


@claim(SOURCE, "depth at which the cosine of 32 orthogonal tokens reaches 0.999, softmax attention, beta = 4")
def hitting_time_softmax(quick: bool) -> Measurement:
    spec = Equiangular(laws=["softmax"], beta=[4.0], T=8.0, records=RECORDS)
    data = compute(spec)
    predicted = data["hitting_time_predicted"].item()
    return Measurement(predicted, data["hitting_time"].item(), predicted - 1e-5, predicted + 1e-5)


@claim(SOURCE, "beta = 0: the cosine of n orthogonal tokens is (e^2t - 1)/(e^2t + n - 1) (largest error)")
def equiangular_closed_form(quick: bool) -> Measurement:
    spec = Equiangular(laws=["softmax"], beta=[0.0], T=6.0, records=RECORDS)
    data = compute(spec)
    exact = np.asarray(theory.equiangular_cosine_at_zero_beta(data["t"].to_numpy(), spec.n))
    return Measurement(0.0, float(np.abs(data["cosine"][0, 0] - exact).max()), 0.0, TOLERANCE)


@claim(SOURCE, "two tokens, softmax attention: the cosine follows its law from an obtuse angle (largest error)")
def two_tokens(quick: bool) -> Measurement:
    spec = Equiangular(laws=["softmax"], n=2, beta=[0.0, 1.0, 4.0], start=-0.9, T=8.0, records=RECORDS)
    data = compute(spec)
    ts = data["t"].to_numpy()
    rate = jax.jit(theory.two_token_rate)
    laws = [follow(lambda rho, beta=beta: float(rate(rho, beta)), spec.start, ts) for beta in spec.beta]
    # At β = 0 the law has a closed form.
    laws[0] = np.tanh(ts + np.arctanh(spec.start))
    return Measurement(0.0, float(np.abs(data["cosine"][0] - np.array(laws)).max()), 0.0, TOLERANCE)


def _equiangular(law: str, quick: bool):
    beta = [0.0, 1.0, 4.0] if quick else [0.0, 0.5, 1.0, 2.0, 4.0, 6.0]
    return compute(Equiangular(laws=[law], T=6.0, records=RECORDS, beta=beta))


def _largest_error(data) -> Measurement:
    return Measurement(0.0, float(np.abs(data["cosine"] - data["cosine_predicted"]).max()), 0.0, TOLERANCE)
