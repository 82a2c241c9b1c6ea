"""Rates of one closed class, and averages over it by the stationary distribution."""

from __future__ import annotations

import numpy as np

__all__ = ["exact_average", "queue", "random_class"]


def queue(size: int, arrive: float, serve: float) -> np.ndarray:
    """Rates of a queue with room for so many: the slower, the nearer the two are to each other."""
    return np.diag(np.full(size, arrive), 1) + np.diag(np.full(size, serve), -1)


def exact_average(rates: np.ndarray, rewards: np.ndarray) -> float:
    """The average by the stationary distribution."""
    size = len(rates)
    generator = rates - np.diag(rates.sum(axis=1))
    system = np.vstack((generator.T, np.ones(size)))
    stationary = np.linalg.lstsq(system, np.append(np.zeros(size), 1.0), rcond=None)[0]
    return float(stationary @ rewards)


def random_class(rng: np.random.Generator, size: int) -> np.ndarray:
    """Rates of one closed class: a ring, and others, from 10^-3 to 10^3."""
    rates = np.where(rng.random((size, size)) < 0.2, 10.0 ** rng.uniform(-3, 3, (size, size)), 0.0)
    np.fill_diagonal(rates, 0.0)
    rates[np.arange(size), (np.arange(size) + 1) % size] += 10.0 ** rng.uniform(-3, 3, size)
    return rates
