"""A particle filter: log weights, systematic resampling, and roughening in the shape of the cloud.

Resampling copies particles, so the copies are shaken; by how much is the optimal bandwidth of a normal kernel, and the
cloud is drawn towards its mean by as much as the shaking widens it (Musso, Oudjane, Le Gland, in "Sequential Monte
Carlo Methods in Practice", 2001; West, "Mixture models, Monte Carlo, Bayesian updating", 1993).

    h = (4 / (N (n + 2)))^(1/(n + 4)),    x ← x̄ + √(1 − h²) (x − x̄) + h √P ε

A few particles a dimension lose their spread by chance alone: covariances of samples are longer one way and shorter
another, and over a thousand resamplings the product of such chances ends a cloud that has learned nothing. So the cloud
is moved to the moments that it is to have: those of the new weights in the directions that the measurement tells of,
widened by (1 + Σw²)/(1 − Σw²) for what so few particles know of them, and those of before in all others.

Where the likelihood is so sharp that fewer than half of the particles would count, it is taken in by shares, with a
resampling and shaking between (tempering), or else a single particle would be left of the cloud.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError, OptionError
from .kalman import Array, Model

_WORD = np.uint64(0xFFFFFFFFFFFFFFFF)
MOST_SHARES = 50  # of one measurement; beyond, the rest is taken in at once
_FLAT = 1e-12  # a cloud so flat, of one direction to another, has no covariance that could be inverted


class Cloud(NamedTuple):
    """Weighted particles; the random numbers of a step depend on `key` and `steps` alone, so that it can be redone."""

    particles: Array  # (N, n)
    log_weights: Array  # (N,), normalised
    key: NDArray[np.uint64]  # (2,)
    steps: NDArray[np.int64]  # () how many were done

    @property
    def mean(self) -> Array:
        return np.exp(self.log_weights) @ self.particles

    @property
    def covariance(self) -> Array:
        centred = self.particles - self.mean
        return (centred.T * np.exp(self.log_weights)) @ centred

    @property
    def effective(self) -> float:
        """1/Σ w²: how many particles count."""
        return _effective(self.log_weights)


def _effective(log_weights: Array) -> float:
    return float(np.exp(-_log_sum(2.0 * log_weights)))


def _log_sum(x: Array) -> float:
    top = x.max()
    return float(top + np.log(np.exp(x - top).sum()))


def _normalised(log_weights: Array) -> Array:
    return log_weights - _log_sum(log_weights)


def start(mean: Array, root: Array, particles: int, rng: np.random.Generator) -> Cloud:
    """Particles from N(mean, root rootᵀ); the generator is asked once more, for the key of all later steps."""
    if particles < 2:
        raise OptionError(f"{particles} particles are too few; 25 a parameter are usual")
    drawn = mean + rng.normal(size=(particles, mean.size)) @ root.T
    key = rng.integers(0, int(_WORD), size=2, dtype=np.uint64, endpoint=True)
    return Cloud(drawn, np.full(particles, -np.log(particles)), key, np.array(0, dtype=np.int64))


def generator(cloud: Cloud) -> np.random.Generator:
    """The random numbers of the next step."""
    counter = np.array([0, 0, 0, int(cloud.steps)], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=cloud.key, counter=counter))


def systematic(weights: Array, offset: float) -> Array:
    """Which particles survive: N points a step of 1/N apart along the summed weights, offset in [0, 1)."""
    N = weights.size
    edges = np.cumsum(weights)
    return np.minimum(np.searchsorted(edges / edges[-1], (np.arange(N) + offset) / N, side="right"), N - 1)


def _root(centred: Array) -> Array:
    """A root of the covariance of rows about zero, also where they are fewer than dimensions."""
    triangle: Array = np.linalg.qr(centred / np.sqrt(len(centred)), mode="r")  # type: ignore[assignment]
    return triangle.T


def _moments(particles: Array, log_weights: Array) -> tuple[Array, Array]:
    """The mean and a root of the covariance of weighted particles."""
    weights = np.exp(log_weights)
    mean = weights @ particles
    return mean, _root((particles - mean) * np.sqrt(len(weights) * weights)[:, None])


def _is_flat(root: Array) -> bool:
    sizes = np.abs(np.diag(root))
    return len(sizes) < root.shape[0] or not sizes.min() > _FLAT * sizes.max()


def _resampled(cloud: Cloud, log_weights: Array, seen: Array, rng: np.random.Generator) -> Array:
    """Particles that count alike, copies shaken apart, moved to the moments that new weights give.

    A measurement of m numbers tells of m directions, those in which the particles vary together with what is `seen`
    (N, m) of them. Elsewhere only chance has changed the moments, and they stay as they were.
    """
    particles, weights = cloud.particles, np.exp(log_weights)
    N, n = particles.shape
    width = min(1.0, (4.0 / (N * (n + 2.0))) ** (1.0 / (n + 4.0)))
    before, root = _moments(particles, cloud.log_weights)
    after, narrow = _moments(particles, log_weights)
    copies = particles[systematic(weights, rng.random())] - after
    drawn = np.sqrt(1.0 - width**2) * copies + width * rng.normal(size=(N, narrow.shape[1])) @ narrow.T
    drawn -= drawn.mean(axis=0)
    by_chance = _root(drawn)
    if n >= N or _is_flat(root) or _is_flat(by_chance):
        return after + drawn
    lost = float(weights @ weights)
    U = np.linalg.solve(root, (particles - before).T)
    together = U @ ((seen - seen.mean(axis=0)) * np.exp(cloud.log_weights)[:, None])
    Q, _ = np.linalg.qr(together / np.maximum(np.linalg.norm(together, axis=0), np.finfo(float).tiny))
    mean, inner = _moments(U.T @ Q, log_weights)
    inner = inner * np.sqrt((1.0 + lost) / max(1.0 - lost, lost))
    white = np.linalg.solve(by_chance, drawn.T)
    white += Q @ ((inner - np.eye(len(inner))) @ (Q.T @ white) + mean[:, None])
    return before + (root @ white).T


def _share(log_weights: Array, log_likelihood: Array, left: float, least: float) -> float:
    """The largest share of a measurement that leaves `least` effective particles."""
    if _effective(_normalised(log_weights + left * log_likelihood)) >= least:
        return left
    low, high = 0.0, left
    for _ in range(40):
        middle = 0.5 * (low + high)
        enough = _effective(_normalised(log_weights + middle * log_likelihood)) >= least
        low, high = (middle, high) if enough else (low, middle)
    return max(low, 1e-12)


def _apart(particles: Array, drawn: Array) -> Array:
    """Noise of unit covariance that has nothing in common with the particles, as it would if they were many more."""
    (N, n), m = particles.shape, drawn.shape[1]
    drawn = drawn - drawn.mean(axis=0)
    if n + m + 1 >= N:
        return drawn
    basis, _ = np.linalg.qr(particles - particles.mean(axis=0))
    drawn -= basis @ (basis.T @ drawn)
    return np.asarray(np.linalg.solve(_root(drawn), drawn.T).T)


def predict(model: Model, cloud: Cloud, u: Any, rng: np.random.Generator) -> Cloud:
    """Every particle by f and its own noise."""
    x = _evaluate(model.transition, cloud.particles, u, model.many)
    lost = np.asarray(~np.isfinite(x).all(axis=1))
    if lost.any():
        weights = np.where(lost, -np.inf, cloud.log_weights)
        if not np.isfinite(weights).any():
            raise DataError("the model has run away at every particle; give it a narrower prior")
        x = x[systematic(np.exp(_normalised(weights)), rng.random())]
        cloud = cloud._replace(log_weights=np.full(len(x), -np.log(len(x))))
    values, vectors = np.linalg.eigh(model.process_noise)
    seen = values > 0
    if seen.any():
        root = vectors[:, seen] * np.sqrt(values[seen])
        x = x + _apart(x, rng.normal(size=(len(x), root.shape[1]))) @ root.T
    return cloud._replace(particles=x)


def _evaluate(function: Any, particles: Array, u: Any, many: bool) -> Array:
    return function(particles, u) if many else np.array([function(x, u) for x in particles])


def _log_likelihood(model: Model, seen: Array, z: Array) -> Array:
    white = np.linalg.solve(np.linalg.cholesky(model.measurement_noise), (z - seen).T)
    value = -0.5 * np.einsum("mk,mk->k", white, white)
    return np.where(np.isfinite(value), value, -np.inf)


def update(model: Model, cloud: Cloud, z: Array, u: Any, rng: np.random.Generator) -> Cloud:
    """Weights by the likelihood; resampling and roughening whenever fewer than half of the particles count."""
    least, left = 0.5 * len(cloud.particles), 1.0
    for shares in range(MOST_SHARES):
        seen = _evaluate(model.measurement, cloud.particles, u, model.many)
        likelihood = _log_likelihood(model, seen, z)
        if not np.isfinite(likelihood).any():
            raise DataError("no particle can explain the measurement; widen the prior or take more particles")
        share = _share(cloud.log_weights, likelihood, left, least) if shares + 1 < MOST_SHARES else left
        weights = _normalised(cloud.log_weights + share * likelihood)
        left -= share
        if left <= 0.0 and _effective(weights) >= least:
            return cloud._replace(log_weights=weights)
        seen = np.where(np.isfinite(likelihood)[:, None], seen, z)
        even = np.full(len(weights), -np.log(len(weights)))
        cloud = cloud._replace(particles=_resampled(cloud, weights, seen, rng), log_weights=even)
        if left <= 0.0:
            break
    return cloud


def step(model: Model, cloud: Cloud, z: Array, u: Any = None) -> Cloud:
    """One prediction and one update with the random numbers of this step."""
    rng = generator(cloud)
    moved = update(model, predict(model, cloud, u, rng), np.asarray(z, dtype=np.float64), u, rng)
    return moved._replace(steps=cloud.steps + 1)
