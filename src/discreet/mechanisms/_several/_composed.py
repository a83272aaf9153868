"""J samples of one client that keep one notion of privacy together: independent draws, each with the largest equal share that is known.

What the shares may be is the accountant's answer for the very integers that are drawn with (`discreet.accounting._splitting`): eps/J for
pure epsilon, which cannot be more; for other notions the exact composition of J boxes, in rationals up to 24 samples.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting import compose, equal_share, keeps_together, profile_of
from discreet.accounting._composition import MOST_SAMPLES
from discreet.accounting._splitting import MOST_EXACT
from discreet.errors import check_count
from discreet.families import ContinuousFamily
from discreet.mechanisms._several._multisets import SAMPLES_ARE
from discreet.privacy import Approximate, Privacy, Pure, extreme_masses
from discreet.release import TOTAL

if TYPE_CHECKING:
    from discreet.mechanisms._sampler import Sampler

Rng = np.random.Generator | None
_STEPS = 60


class ComposedSampler:
    """Several samples of one client that keep one notion together, drawn one by one. Made by `sampler.several(samples)`.

    Args:
        whole: the sampler that would spend the whole budget on one sample.
        samples: how many samples of each client.

    Raises:
        DiscreetError: for more samples than can be added up, and a budget of which nothing is left for each.
    """

    def __init__(self, whole: Sampler[Any], *, samples: int) -> None:
        self._whole = whole
        self._samples = check_count("samples", samples, most=MOST_SAMPLES, fix=SAMPLES_ARE)
        self._share = self._find_share()

    @property
    def family(self) -> Any:
        """Who the clients may be."""
        return self._whole.family

    @property
    def samples(self) -> int:
        """How many samples of each client are released."""
        return self._samples

    @property
    def privacy(self) -> Privacy:
        """What all samples of a client together promise."""
        return self._whole.privacy

    @property
    def share(self) -> Sampler[Any]:
        """The sampler of each single draw."""
        return self._share

    def _find_share(self) -> Sampler[Any]:
        notion = equal_share(self.privacy, samples=self.samples, bounds=self.family.bounds)
        less = Fraction(1, 1 << 50)
        for _ in range(_STEPS):
            sampler = self._whole.with_privacy(notion)
            if not isinstance(notion, Pure) or self._is_certain(sampler):
                return sampler
            notion, less = Pure(float(notion.epsilon * (1 - less))), 2 * less
        raise AssertionError("a share was found that boxes in integers do not keep")

    def _is_certain(self, sampler: Sampler[Any]) -> bool:
        """Whether so many draws with the integers of this sampler keep the notion. (Shares of epsilon add up, as squares of nu do.)"""
        if isinstance(self.privacy, Pure):
            return True
        if self.samples <= MOST_EXACT:
            masses = extreme_masses(Fraction(sampler.lattice.shared_total, TOTAL), sampler.lattice.largest_ratio)
            return keeps_together(self.privacy, *masses, self.samples)
        assert isinstance(self.privacy, Approximate)
        return compose([(profile_of(sampler), self.samples)]).delta(self.privacy.epsilon) <= self.privacy.delta

    def each(self, p: Any) -> Any:
        """The law of each draw, which are independent given the client.

        Args:
            p: what one client or many hold, as for `release`.

        Returns:
            As `output` of the sampler gives it.

        Raises:
            DiscreetError: for what is no law.
        """
        return self.share.output(p)

    def release(self, p: Any, *, rng: Rng = None) -> NDArray[Any]:
        """The samples of each client. All samples of a client together spend the budget, once.

        Args:
            p: what one client or many hold, as for `release` of the sampler.
            rng: a seeded generator, for experiments; then it is NOT private, and warns so.

        Returns:
            An array (..., samples), or (..., samples, dim) of points.

        Raises:
            DiscreetError: for what is no law, before anything is drawn.
        """
        shape = self._whole.carrier.read(p).shape
        if isinstance(self.family, ContinuousFamily):
            return np.stack([self.share.release(p, rng=rng) for _ in range(self.samples)], axis=len(shape))
        drawn = [self.share.release_number(p, rng=rng) for _ in range(self.samples)]
        return np.asarray(self._whole.carrier.as_released(np.stack(drawn, axis=-1), (*shape, self.samples)))

    def __repr__(self) -> str:
        return f"ComposedSampler(<{self.samples} samples>, {self._whole!r})"
