"""Spaces in which tokens live."""

from ._basis import AbstractBasis as AbstractBasis, refuse_other_coefficients as refuse_other_coefficients
from ._manifold import AbstractManifold as AbstractManifold, AbstractSpace as AbstractSpace
from ._off import refuse_off_manifold as refuse_off_manifold
from .euclidean import Euclidean as Euclidean
from .fourier import FourierModes as FourierModes, fourier_modes as fourier_modes
from .frames import Frame as Frame, FrameBundle as FrameBundle
from .gaussians import Gaussian as Gaussian, Gaussians as Gaussians
from .harmonics import SphericalHarmonics as SphericalHarmonics, spherical_harmonics as spherical_harmonics
from .polar import Polar as Polar, PolarSpace as PolarSpace
from .sphere import Sphere as Sphere
