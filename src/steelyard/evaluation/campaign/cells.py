"""Tasks: the pieces of work a campaign is cut into, the same pieces whoever does them."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from ... import __version__
from .methods import Method, is_direct, label_of
from .scene import Noise, Scene
from .settings import prepared_methods

_ROOMS = ("robot", "dynamics", "physics", "excitation", "data", "simulation", "identification", "evaluation")
# Guesses that one task of an estimator that simulates takes on: minutes of work, not hours.
_GUESSES_A_TASK = 5
# Noise runs of one motion that share a factorisation.
_SEEDS_A_TASK = 16


@cache
def _code() -> str:
    """A hash of the sources that rows follow from: rows of two states of the code do not belong in one table."""
    package = Path(__file__).parents[2]
    digest = hashlib.sha256(__version__.encode())
    for room in _ROOMS:
        for path in sorted((package / room).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class Task:
    """Noise runs of one level, prepared in one way, by some estimators from some initial guesses."""

    scene: Scene
    noise: Noise
    preprocessing: str
    seeds: tuple[int, ...]
    guesses: tuple[int, ...]
    methods: tuple[Method, ...]

    @cached_property
    def key(self) -> str:
        """A name for its part of the table, by all that it depends on."""
        labels = [label_of(*method) for method in self.methods]
        told = [_code(), self.scene.key, *self.noise, self.preprocessing, self.seeds, self.guesses, labels]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:32]

    @property
    def rows(self) -> int:
        return len(self.seeds) * len(self.guesses) * len(self.methods)


def levels_of(scene: Scene) -> tuple[Noise, ...]:
    """All pairs of noise levels."""
    noise = scene.study.noise
    return tuple(Noise(float(np.radians(q)), float(tau)) for q in noise.position_deg for tau in noise.torque)


def _blocks(count: int, size: int) -> Iterator[tuple[int, ...]]:
    for first in range(0, count, size):
        yield tuple(range(first, min(first + size, count)))


def _of_level(scene: Scene, noise: Noise, how: str, methods: Sequence[Method], seeds: int) -> Iterator[Task]:
    direct = tuple(method for method in methods if is_direct(method))
    guesses = scene.study.guesses
    # Without noise in the loop all runs make the same motion.
    together = _SEEDS_A_TASK if noise.position == 0 else 1
    for some in _blocks(seeds, together):
        if direct:
            yield Task(scene, noise, how, some, tuple(range(guesses)), direct)
        for method in methods:
            if not is_direct(method):
                for seed in some:
                    for part in _blocks(guesses, _GUESSES_A_TASK):
                        yield Task(scene, noise, how, (seed,), part, (method,))


def tasks_of(scenes: Sequence[Scene]) -> list[Task]:
    """All tasks, in an order in which any first share of them is like the whole, so that the time left can be told."""
    found: list[tuple[int, Task]] = []
    for scene in scenes:
        study = scene.study
        prepared = prepared_methods(study)
        seeds = len(scene.truth) if study.seeds is None else study.seeds
        for noise in levels_of(scene):
            for how, methods in prepared.items():
                found += [(task.seeds[0], task) for task in _of_level(scene, noise, how, methods, seeds)]
    return [task for _, task in sorted(found, key=lambda pair: pair[0])]
