"""Several samples of one client under one budget: `JointSampler` draws them together, `ComposedSampler` one by one with equal shares.

`JointSampler` draws J samples of one client that are epsilon-LDP together. It makes one draw from a box on multisets, onto which the client's
P^J is projected (`discreet.mechanisms._multisets`).

A client may have so few outcomes that all multisets of them fit at their ceiling. Then no divergence determines where the rest of the mass
goes, since the client has no mass there. It goes to multisets with as many of the client's outcomes as possible, so that single samples look
like the client too. To this end P is replaced by P + t mu for a tiny t. Its projection has the same values on the client's outcomes, except
on multisets so rare that t mu, about 1e-18, exceeds the client's mass there.

`ComposedSampler` makes J independent draws that keep one notion of privacy together, each with the largest equal share that is known. The
accountant determines the share for the very integers that are drawn with (`discreet.accounting._splitting`). It is eps/J for pure epsilon:
the most possible for the optimal and the linear mechanism on a simplex, where two clients differ by the full factor. For other notions it
follows from the exact composition of J boxes, in rationals up to 24 samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import divergences, release
from discreet._base import OldName
from discreet._base.labelled import LawLike
from discreet.accounting import MOST_EXACT, MOST_SAMPLES, compose, equal_share, keeps_together, profile_of
from discreet.divergences import FDivergence
from discreet.errors import DiscreetError, check_count
from discreet.families import (
    Band,
    Bounds,
    ContinuousFamily,
    FiniteFamily,
    Simplex,
    refuse_bad_laws,
    refuse_non_family,
    serves_everybody,
)
from discreet.mechanisms._atoms import OutcomeAtoms
from discreet.mechanisms._multisets import SAMPLES_FIX, Around, Multisets, make_joint_box, read_around_argument
from discreet.privacy import Approximate, Privacy, Pure, chosen_privacy, extreme_masses
from discreet.privacy.tradeoff import (
    Constants,
    Risk,
    warn_of_weak_privacy,
)
from discreet.projection import Box, worst_case_over_family
from discreet.release import TOTAL, Lattice

if TYPE_CHECKING:
    from discreet.mechanisms._sampler import Sampler

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Rng = np.random.Generator | None
_TINY = 1e-18  # share of the reference that is added for clients with few outcomes
_ENTRIES = 1 << 22  # of laws on multisets that are held at once
_STEPS = 60  # of lowering a share until the integers keep it


class JointSampler:
    """A sampler of several samples of one client that are epsilon-LDP together, drawn at once.

    `release` of an `OptimalSampler` with `size=` uses it where the multisets of outcomes can be listed. By default the worst client is served
    several times better than by samples at an equal share of the budget each. Around the product, every client is served at least as well as
    by such samples. Clients with many outcomes are served better around the product than around the envelope.

    Args:
        family: the family of client distributions: `Simplex(...)` or a `Band(...)`.
        samples: how many samples of each client.
        epsilon: the budget of all of them together.
        privacy: `Pure(epsilon)` in place of epsilon.
        around: "envelope" for the worst client, "product" for clients with many outcomes. By default the envelope, and the product for a band
            that serves everybody.
        band: a `Band` on the multisets in place of both, such as `design(Simplex(len(joint.multisets)), epsilon=...,
            clients=joint.laws(examples)).family`.

    Raises:
        DiscreetError: for a family that is not finite, more samples than can be drawn jointly, a notion other than pure epsilon.

    Example:
        >>> joint = JointSampler(Simplex(["red", "green", "blue"]), samples=3, epsilon=2.0)
        >>> three = joint.release([0.7, 0.2, 0.1])
    """

    name = "optimal"

    def __init__(
        self,
        family: FiniteFamily,
        *,
        samples: int,
        epsilon: float | None = None,
        privacy: Privacy | None = None,
        around: Around | None = None,
        band: Band | None = None,
    ) -> None:
        refuse_non_family(family)
        if isinstance(family, ContinuousFamily):
            raise DiscreetError(f"family = {family!r} is continuous; a joint draw is for finitely many outcomes")
        notion = chosen_privacy(epsilon, privacy)
        if not isinstance(notion, Pure):
            raise DiscreetError(
                f"privacy = {notion!r}: a joint draw is for pure epsilon; OptimalSampler(..., privacy=...).release(p, size=...) draws one by "
                "one with a share of it each"
            )
        self._family, self._privacy = family, notion
        self._multisets = Multisets(family.size, check_count("samples", samples, fix=SAMPLES_FIX))
        self._carrier = OutcomeAtoms(family)
        if band is not None and not (isinstance(band, Band) and band.size == len(self._multisets)):
            raise DiscreetError(f"band = {band!r} is not a Band on the {len(self._multisets):,} multisets")
        centre = read_around_argument(around, family, self.samples, band)
        self._band, self._joint_box = band, make_joint_box(family, self._multisets, notion.epsilon, centre, band)
        warn_of_weak_privacy(notion)

    @property
    def family(self) -> FiniteFamily:
        """The family of client distributions."""
        return self._family

    @property
    def samples(self) -> int:
        """How many samples of each client are released."""
        return self._multisets.samples

    @property
    def privacy(self) -> Pure:
        """The privacy guarantee of all samples of a client together."""
        return self._privacy

    @property
    def epsilon(self) -> float:
        """The budget of all samples of a client together."""
        return self._privacy.epsilon

    @property
    def multisets(self) -> Multisets:
        """The multisets of outcomes that are drawn; their order is then chosen at random."""
        return self._multisets

    @property
    def around(self) -> Around | None:
        """The centre of the box: "envelope" or "product"; None for a band of its own."""
        return self._joint_box.around

    @property
    def reference(self) -> float | Floats:
        """mu of every multiset."""
        return self._joint_box.reference

    @cached_property
    def each_reference(self) -> Floats:
        """mu of every outcome in any single sample; the distribution of each sample lies between b and B times it."""
        reference = np.broadcast_to(self.reference, len(self.multisets)).astype(np.float64)
        return np.asarray(self.multisets.marginals(reference[None, :])[0])

    @property
    def bounds(self) -> Bounds:
        """Bounds of a client's law relative to `each_reference`."""
        if isinstance(self.family, Simplex) or serves_everybody(self.family):
            return Bounds(0.0, 1.0 / float(self.each_reference.min()))
        ratio = np.broadcast_to(self.family.reference, self.family.size) / self.each_reference
        return Bounds(self.family.bounds.lower * float(ratio.min()), self.family.bounds.upper * float(ratio.max()))

    @property
    def carrier(self) -> OutcomeAtoms:
        """The outcomes, from which single samples are made."""
        return self._carrier

    @property
    def constants(self) -> Constants:
        """The constants of the joint box; around the product those of one draw at an equal share, to the power of the samples."""
        return self._joint_box.constants

    @cached_property
    def box(self) -> Box:
        """The joint box on multisets, in floating point."""
        return Box.around(self.reference, len(self.multisets), self.constants, self.epsilon)

    @cached_property
    def lattice(self) -> Lattice:
        """The joint box in integers; the guarantee rests on it."""
        return Lattice.for_privacy(self.box, self.privacy)

    def laws(self, p: LawLike) -> Floats:
        """The distribution P^J on multisets of that many independent draws of a client.

        Args:
            p: probabilities (k,) or (..., k), or a dict, a Series or a frame by label.

        Returns:
            Probabilities (..., multisets).

        Raises:
            DiscreetError: if p is not a distribution.
        """
        return self._map_client_laws_in_batches(p, self.multisets.laws)

    def output(self, p: LawLike) -> Floats:
        """The output distribution Q(.|P) on multisets.

        Args:
            p: probabilities (k,) or (..., k), or a dict, a Series or a frame by label.

        Returns:
            Probabilities (..., multisets); `multisets.members` lists the multisets.

        Raises:
            DiscreetError: if p is not a distribution.
        """
        return self._map_client_laws_in_batches(p, lambda rows: self.box.project(self._multiset_laws_to_project(rows)))

    def output_of_each(self, p: LawLike) -> Floats:
        """The output distribution of any single one of the samples.

        Args:
            p: probabilities (k,) or (..., k), or a dict, a Series or a frame by label.

        Returns:
            Probabilities (..., k).

        Raises:
            DiscreetError: if p is not a distribution.
        """
        laws = self.output(p)
        return self.multisets.marginals(laws.reshape(-1, len(self.multisets))).reshape(
            *laws.shape[:-1], self.family.size
        )

    each = OldName("output_of_each")

    def weights(self, p: LawLike) -> Integers:
        """The output distribution as the integers that multisets are drawn with.

        Each row sums to 2^62. For any two clients, every entry is at most e^epsilon times the other client's.

        Args:
            p: probabilities (k,) or (..., k), or a dict, a Series or a frame by label.

        Returns:
            Whole numbers (..., multisets).

        Raises:
            DiscreetError: if p is not a distribution.
        """
        return self._map_client_laws_in_batches(
            p, lambda rows: release.weights(self.lattice, self._multiset_laws_to_project(rows), None)
        )

    def release(self, p: LawLike, *, rng: Rng = None) -> NDArray[Any]:
        """The samples of each client: outcome numbers, or their labels. All samples of a client together spend epsilon, once.

        Args:
            p: probabilities (k,) or (..., k), or a dict, a Series or a frame by label.
            rng: a seeded generator, for experiments; the release is then NOT private, and warns so.

        Returns:
            An array (..., samples), in a random order.

        Raises:
            DiscreetError: if p is not a distribution, before anything is drawn.
        """
        batch = self._carrier.read_clients(p)
        numbers = self._draw_multiset_numbers(batch.clients, rng)
        samples = self.multisets.members_in_random_order(numbers, release.generator(rng))
        return np.asarray(self._carrier.samples_in_user_form(samples, (*batch.shape, self.samples)))

    def release_number(self, p: LawLike, *, rng: Rng = None) -> int | Integers:
        """As `release`, but only the number of the multiset. A client needs to send no more; `points` turns it into samples.

        Args:
            p: probabilities (k,) or (..., k), or a dict, a Series or a frame by label.
            rng: a seeded generator, for experiments; the release is then NOT private.

        Returns:
            A whole number, or an array of them.

        Raises:
            DiscreetError: if p is not a distribution, before anything is drawn.
        """
        batch = self._carrier.read_clients(p)
        numbers = self._draw_multiset_numbers(batch.clients, rng).reshape(batch.shape)
        return numbers if batch.shape else int(numbers)

    def numbers_of_integers(self, p: LawLike | None, uniform: Integers) -> Integers:
        """As `release_number`, by given integers: the numbers of the multisets they fall on. Tables draw so under a secret.

        Args:
            p: probabilities (n, k); None for clients without data, who draw from the reference.
            uniform: n integers, uniform in [0, 2^62). Each is used once: two draws by one integer have no common bound.

        Returns:
            n numbers of multisets.

        Raises:
            DiscreetError: if p is not a distribution, or there are not n integers.
        """
        clients = None if p is None else self._carrier.read_clients(p).clients
        shape = np.shape(uniform)[:1] if clients is None else clients.shape[:1]
        if not isinstance(uniform, np.ndarray) or uniform.dtype != np.int64 or uniform.shape != shape:
            raise DiscreetError("uniform does not hold one 64-bit integer for each client; pass Randomness.integers(n)")
        if clients is not None:
            return self._multiset_numbers_from_uniform_integers(
                map(self._multiset_laws_to_project, self._iterate_checked_laws_in_batches(clients)), uniform
            )
        law = np.broadcast_to(np.asarray(self.reference, dtype=np.float64), len(self.multisets))
        rows = np.broadcast_to(law / law.sum(), (len(uniform), law.size))
        return self._multiset_numbers_from_uniform_integers(
            (rows[part] for part in self._iterate_row_slices_within_memory(len(rows))), uniform
        )

    def points(self, numbers: ArrayLike, *, rng: Rng = None) -> NDArray[Any]:
        """The samples that released multisets stand for, in a random order. It spends no budget.

        Args:
            numbers: what `release_number` returned, one or many.
            rng: a generator for the order.

        Returns:
            An array (..., samples).

        Raises:
            DiscreetError: for numbers out of range.
        """
        multiset_numbers = np.asarray(numbers)
        if multiset_numbers.dtype.kind not in "iu" or bool(
            ((multiset_numbers < 0) | (multiset_numbers >= len(self.multisets))).any()
        ):
            raise DiscreetError(
                f"numbers = {numbers!r} are not whole numbers between 0 and {len(self.multisets) - 1}, as release_number gives them"
            )
        samples = self.multisets.members_in_random_order(
            multiset_numbers.ravel().astype(np.int64), release.generator(rng)
        )
        return np.asarray(self._carrier.samples_in_user_form(samples, (*multiset_numbers.shape, self.samples)))

    def _draw_multiset_numbers(self, clients: Floats, rng: Rng) -> Integers:
        """One multiset for each client, drawn with its integer weights."""
        uniform = release.entropy_or_seeded_randomness(rng).integers(len(clients))
        return self._multiset_numbers_from_uniform_integers(
            map(self._multiset_laws_to_project, self._iterate_checked_laws_in_batches(clients)), uniform
        )

    def _map_client_laws_in_batches(self, p: LawLike, on_multisets: Callable[[Floats], NDArray[Any]]) -> NDArray[Any]:
        """What a function makes of clients' distributions on the outcomes, block by block: an array (..., multisets)."""
        batch = self._carrier.read_clients(p)
        outputs = [on_multisets(rows) for rows in self._iterate_checked_laws_in_batches(batch.clients)]
        return np.concatenate(outputs).reshape(*batch.shape, len(self.multisets))

    def _multiset_numbers_from_uniform_integers(self, blocks: Iterable[Floats], uniform: Integers) -> Integers:
        """The multisets that integers fall on, for laws on multisets that come in blocks of rows."""
        numbers, start = [], 0
        for laws in blocks:
            numbers.append(release.outcomes(self.lattice, laws, None, uniform[start : start + len(laws)]))
            start += len(laws)
        return np.concatenate(numbers)

    def risk(self, divergence: str | FDivergence) -> Risk:
        """The largest divergence from P^J, the distribution of that many independent draws, to the output distribution.

        Around the envelope it is over the family: exact on the simplex (`attained`), elsewhere an upper bound. Around the product or a band
        it is over all clients, and exact if the family contains them all. It is `tight` where raw draws are private, and for one sample where
        the `OptimalSampler` is. Elsewhere `minimax_risk(..., samples=, bracket=True)` brackets the minimax value.

        Args:
            divergence: a name such as "kl" or "tv", or an `FDivergence`.

        Returns:
            A `Risk`.

        Raises:
            DiscreetError: for an unknown divergence.
        """
        if self.samples == 1 and self._band is None:
            return worst_case_over_family(self.family, self.constants, self.epsilon, divergence, self.privacy)
        return self._joint_box.risk(divergences.divergence(divergence))

    def _iterate_checked_laws_in_batches(self, clients: Floats) -> Iterator[Floats]:
        """Clients' distributions on the outcomes, checked, as many at a time as fit on multisets."""
        rows = self._carrier.laws_on_atoms(clients, refuse=False).rows
        refuse_bad_laws(rows)
        for part in self._iterate_row_slices_within_memory(len(rows)):
            yield rows[part]

    def _iterate_row_slices_within_memory(self, rows: int) -> Iterator[slice]:
        """At least one part of so many rows, of as many rows as are held at once on multisets."""
        step = max(1, _ENTRIES // len(self.multisets))
        for start in range(0, max(1, rows), step):
            yield slice(start, start + step)

    def _multiset_laws_to_project(self, rows: Floats) -> Floats:
        """The distributions on multisets that are projected; a client with few outcomes gets a tiny part of the reference."""
        laws = self.multisets.laws(rows)
        narrow = np.where(laws > 0.0, self.box.upper, 0.0).sum(axis=1) <= 1.0
        if narrow.any():
            mu = np.broadcast_to(self.family.reference, self.family.size)
            laws[narrow] = self.multisets.laws((rows[narrow] + _TINY * mu) / (1.0 + _TINY))
        return laws

    def __repr__(self) -> str:
        argument = "" if self._band is None else f", band={self._band!r}"
        if self.around != read_around_argument(None, self.family, self.samples, self._band):
            argument = f", around={self.around!r}"
        return f"JointSampler({self.family!r}, samples={self.samples}, epsilon={self.epsilon:g}{argument})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JointSampler) and self._comparison_key() == other._comparison_key()

    def __hash__(self) -> int:
        return hash((JointSampler, *self._comparison_key()))

    def _comparison_key(self) -> tuple[Any, ...]:
        return (self.family, self.samples, self.privacy, self.around, self._band)


class ComposedSampler:
    """A sampler of several samples of one client that keep one notion together, drawn one by one. Made by `sampler.with_samples(samples)`.

    Args:
        whole: the sampler that would spend the whole budget on one sample.
        samples: how many samples of each client.

    Raises:
        DiscreetError: for more samples than the accountant can compose, and for a budget too small to split.
    """

    def __init__(self, whole: Sampler[Any], *, samples: int) -> None:
        if isinstance(whole, type) or not hasattr(whole, "with_privacy"):
            raise DiscreetError(f"whole = {whole!r} is not a sampler; pass OptimalSampler(...) or LinearSampler(...)")
        self._whole = whole
        self._samples = check_count("samples", samples, most=MOST_SAMPLES, fix=SAMPLES_FIX)
        self._share = self._find_sampler_of_one_draw()

    @property
    def family(self) -> Any:
        """The family of client distributions."""
        return self._whole.family

    @property
    def samples(self) -> int:
        """How many samples of each client are released."""
        return self._samples

    @property
    def privacy(self) -> Privacy:
        """The privacy guarantee of all samples of a client together."""
        return self._whole.privacy

    @property
    def share(self) -> Sampler[Any]:
        """The sampler of each single draw."""
        return self._share

    def _find_sampler_of_one_draw(self) -> Sampler[Any]:
        notion = equal_share(self.privacy, samples=self.samples, bounds=self.family.bounds)
        reduction = Fraction(1, 1 << 50)
        for _ in range(_STEPS):
            sampler = self._whole.with_privacy(notion)
            if sampler.privacy != notion:
                raise DiscreetError(
                    f"{sampler!r} promises {sampler.privacy}, not the share {notion}; mend with_privacy"
                )
            if not isinstance(notion, Pure) or self._composed_draws_keep_privacy(sampler):
                return sampler
            notion, reduction = Pure(float(notion.epsilon * (1 - reduction))), 2 * reduction
        raise AssertionError("the integer boxes do not keep the share that was found")

    def _composed_draws_keep_privacy(self, sampler: Sampler[Any]) -> bool:
        """Whether that many draws with this sampler's integers keep the notion. Shares of epsilon add up; those of nu add up as squares."""
        if isinstance(self.privacy, Pure):
            return True
        if self.samples <= MOST_EXACT:
            masses = extreme_masses(Fraction(sampler.lattice.shared_total, TOTAL), sampler.lattice.largest_ratio)
            return keeps_together(self.privacy, *masses, self.samples)
        assert isinstance(self.privacy, Approximate)
        return compose([(profile_of(sampler), self.samples)]).delta(self.privacy.epsilon) <= self.privacy.delta

    def output_of_each(self, p: Any) -> Any:
        """The output distribution of each draw. The draws are independent given the client.

        Args:
            p: the distribution of one client or of many, as for `release`.

        Returns:
            The `output` of the sampler of one draw.

        Raises:
            DiscreetError: if p is not a distribution.
        """
        return self.share.output(p)

    each = OldName("output_of_each")

    def release(self, p: Any, *, rng: Rng = None) -> NDArray[Any]:
        """The samples of each client. All samples of a client together spend the budget, once.

        Args:
            p: the distribution of one client or of many, as for `release` of the sampler.
            rng: a seeded generator, for experiments; the release is then NOT private, and warns so.

        Returns:
            An array (..., samples), or (..., samples, dim) of points.

        Raises:
            DiscreetError: if p is not a distribution, before anything is drawn.
        """
        shape = self._whole.carrier.read_clients(p).shape
        if isinstance(self.family, ContinuousFamily):
            return np.stack([self.share.release(p, rng=rng) for _ in range(self.samples)], axis=len(shape))
        numbers = [self.share.release_number(p, rng=rng) for _ in range(self.samples)]
        return np.asarray(self._whole.carrier.samples_in_user_form(np.stack(numbers, axis=-1), (*shape, self.samples)))

    def __repr__(self) -> str:
        return f"ComposedSampler(<{self.samples} samples>, {self._whole!r})"
