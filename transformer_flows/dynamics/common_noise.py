"""Tokens under a flow and a random field common to all of them."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from .._checks import refuse_other_type
from .._types import ScalarLike, Tokens
from ..geometry import AbstractSpace, Sphere
from ..models import AbstractField
from ..paths import AbstractPath, AbstractProcess, Brownian, BrownianPath
from ._flow import AbstractFlow, existing_tokens
from ._noisy_flow import AbstractItoFlow, AbstractNoisyFlow, AbstractStratonovichFlow


class CommonNoiseFlow(AbstractStratonovichFlow):
    """dx_i = flow(t, x)_i dt + P_{x_i} ∘ dB(t, x_i) on the sphere, in the sense of Stratonovich.

    B is a random field such as `GaussianField`, the same for all tokens: equal tokens stay equal to the last bit. Add
    an `IdiosyncraticField` to it for noise of every token's own. `flow` is any flow of tokens, `RestFlow(manifold)`
    for none; its drift, its masks and its energies stay what they are. Called as `flow(t, x)` it is the drift.

    `noise` are the Brownian motions of the field, drawn or not, with values like `field.like`. None draws them on the
    steps of the solve, which must then be regular: path and step belong together. For one path at several steps, give
    the process a unit of which all are multiples, or halvings down to `depth`: `Brownian(field.like, unit=0.1,
    depth=4)`.

    Raises `ValueError` for parts of other types, a manifold that is not the field's sphere, and noise that is not
    Brownian or has another shape than the field's. Source: arXiv:2604.26898, its limit equation.
    """

    flow: AbstractFlow
    field: AbstractField
    noise: AbstractPath | AbstractProcess

    def __init__(
        self, flow: AbstractFlow, field: AbstractField, *, noise: AbstractPath | AbstractProcess | None = None
    ):
        refuse_other_type(flow, "flow", AbstractFlow, "a flow of tokens such as AttentionFlow")
        refuse_other_type(field, "field", AbstractField, "a random field such as GaussianField")
        if isinstance(flow, AbstractNoisyFlow):
            raise ValueError("flow must have no noise of its own: add the fields, field + other.")
        refuse_other_sphere(field, flow.manifold)
        self.flow = flow
        self.field = field
        self.noise = noise_of(field, noise)

    @property
    def manifold(self) -> Sphere:
        return Sphere(self.field.d)

    @property
    def quiet(self) -> AbstractFlow:
        return self.flow

    @property
    def only_ito(self) -> str:
        if self.field.depends_smoothly:
            return ""
        return (
            "a factor of the Gram matrix, which depends on the tokens, has a spurious Stratonovich drift: solve "
            "flow.to_ito(), or take modes for the field"
        )

    def __call__(self, t: ScalarLike, x: Tokens) -> Tokens:
        return self.flow(t, x)

    def diffusion(self, t: ScalarLike, x: Tokens, dw: PyTree[Array]) -> Tokens:
        moved = self.manifold.project(x, self.field(x, dw))
        existing = existing_tokens(self.flow)
        return moved if existing is None else jnp.where(existing[:, None], moved, 0)

    def prepared(self) -> "CommonNoiseFlow":
        return eqx.tree_at(lambda flow: flow.field, self, self.field.prepared())

    def to_ito(self) -> "ItoFlow":
        """The same law as an Itô equation: the drift −½(d−1)k(1)x is added, and steps are Euler's."""
        return ItoFlow(self)


class ItoFlow(AbstractItoFlow):
    """dx_i = (flow(t, x)_i + field.ito_drift(x_i)) dt + P_{x_i} dB(t, x_i): `CommonNoiseFlow` in the sense of Itô."""

    stratonovich: CommonNoiseFlow

    def __init__(self, stratonovich: CommonNoiseFlow):
        self.stratonovich = stratonovich

    @property
    def manifold(self) -> Sphere:
        return self.stratonovich.manifold

    @property
    def noise(self) -> AbstractPath | AbstractProcess:
        return self.stratonovich.noise

    @property
    def quiet(self) -> AbstractFlow:
        return self.stratonovich.flow

    def __call__(self, t: ScalarLike, x: Tokens) -> Tokens:
        drift = self.stratonovich.field.ito_drift(x)
        existing = existing_tokens(self)
        return self.stratonovich(t, x) + (drift if existing is None else jnp.where(existing[:, None], drift, 0))

    def diffusion(self, t: ScalarLike, x: Tokens, dw: PyTree[Array]) -> Tokens:
        return self.stratonovich.diffusion(t, x, dw)

    def prepared(self) -> "ItoFlow":
        return ItoFlow(self.stratonovich.prepared())


def refuse_other_sphere(field: AbstractField, space: AbstractSpace) -> None:
    """Raise `ValueError` unless the space that a flow moves in is the field's sphere."""
    if not (isinstance(space, Sphere) and space.d == field.d):
        raise ValueError(f"the field lives on Sphere({field.d}), the flow on {space}.")


def noise_of(field: AbstractField, noise: AbstractPath | AbstractProcess | None) -> Brownian | BrownianPath:
    """The noise of a field; None is drawn on the steps. Raises `ValueError` for what has not the field's shapes."""
    return noise_like(field.like, noise, type(field).__name__)


def noise_like(like: PyTree[Any], noise: AbstractPath | AbstractProcess | None, user: str) -> Brownian | BrownianPath:
    """The noise of a user whose increments are like `like`; None and what is refused as in `noise_of`.

    Only Brownian motion has the two senses of an integral, and the drift between them.
    """
    if noise is None:
        return Brownian(like, unit=None, depth=0)
    if not isinstance(noise, Brownian | BrownianPath):
        raise ValueError(
            "noise must be Brownian, whose integrals have the sense that the flow says, drawn or not, or None; got "
            f"{type(noise).__name__}."
        )
    own = noise.like if isinstance(noise, Brownian) else eqx.filter_eval_shape(noise, 0.0)
    if _shapes(own) != _shapes(like):
        raise ValueError(f"{user} takes noise of shape {_text(like)}; the noise given has {_text(own)}.")
    return noise


def _shapes(tree: PyTree[Any]) -> tuple[Any, list[Any]]:
    leaves, structure = jax.tree.flatten(tree)
    return structure, [getattr(leaf, "shape", leaf) for leaf in leaves]


def _text(tree: PyTree[Any]) -> str:
    structure, shapes = _shapes(tree)
    return str(jax.tree.unflatten(structure, shapes))
