"""Estimate the population behind samples, or behind counts of released outcomes: on outcomes, or on bins of a line.

What was released is counted first, on the outcomes of a finite family or on the cells of a line; from then on nothing depends on who sent
what. Bins of a line are whole cells put together (`discreet.estimation._counting`), or lie between public edges.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet._base.labelled import LawLike
from discreet.agreement import Agreement
from discreet.domain import Bins, Domain
from discreet.errors import OPEN_UNIT, DiscreetError, check_count
from discreet.estimation._counting import (
    SampleRows,
    bin_cells,
    cells_as_bins,
    check_distinct,
    checked_counts,
    counts_of,
    line_of,
    masses_between,
    reference_on,
    rows_of,
)
from discreet.estimation._inversion import Inversion, inversion_of, joint_inversion
from discreet.estimation._population import Population
from discreet.estimation._reweighting import example_laws, reweight_examples
from discreet.families import ContinuousFamily
from discreet.mechanisms import AnyFamily, ComposedSampler, JointSampler, ReportSampler, Sampler

Floats = NDArray[np.float64]

_ONE_SAMPLE = "examples are for one sample of each client; give those of one round"


def population(
    sampler: Sampler[AnyFamily] | ComposedSampler | JointSampler | Agreement,
    *,
    samples: ArrayLike | None = None,
    counts: LawLike | None = None,
    clients: ArrayLike | None = None,
    rounds: int | None = None,
    edges: ArrayLike | None = None,
    bins: int | None = None,
    examples: Any = None,
    confidence: float = 0.95,
) -> Population:
    """The population behind samples that were released, one of each client, or behind how often each outcome was.

    Args:
        sampler: what released them, or the agreement on it. Samples of `release(p, size=J)` were released by `sampler.several(J)`.
        samples: what was released: labels, outcome numbers, or points of an interval, which count for their cells. Several samples of each
            client are a row for each, (n, J): clients are counted then, not samples, however those of one hang together.
        counts: instead: how often each outcome was released; on a continuous family each of its cells, or each bin between `edges`.
        clients: whose samples they are, in the same order. A client that comes twice is refused: its samples, of several rounds or of one
            release twice, are not those of two clients. Without it that they are all different is taken on trust.
        rounds: how many times each client released, with the whole budget of the sampler each time; samples then have a row of as many for
            each client. Without it rows are taken of an agreement, which says its rounds, or of what released several samples at once.
        edges: on a continuous family in one dimension, the ends of public bins; outcomes of a finite family are what its domain says.
        bins: or how many bins its cells are put into, of about equal reference mass. Unless said, as many (4 to 32) as leave the noise of
            an average share at half of it.
        examples: laws (N, k) of public examples, or a scipy.sparse matrix of their counts; on a line on the cells that are released.
            `reweight_examples` is then the population that they have when they are weighted so as to explain the samples.
        confidence: of every interval.

    Returns:
        Shares and statistics of the average client, with intervals.

    Raises:
        DiscreetError: for samples that cannot have been released by this sampler, and counts that are none.
    """
    OPEN_UNIT.check("confidence", confidence)
    if (samples is None) == (counts is None):
        raise DiscreetError("pass either samples= (what was released) or counts= (how often each outcome was)")
    if clients is not None:
        check_distinct(clients, samples)
    released_by = sampler
    if isinstance(sampler, ReportSampler) or (isinstance(sampler, Agreement) and sampler.blocks is not None):
        raise DiscreetError(
            f"{sampler!r} releases reports, which are no samples; use reported_population(..., reports=)"
        )
    if isinstance(sampler, Agreement):
        sampler = sampler.sampler() if sampler.joint is None else sampler.joint_sampler()
    if isinstance(sampler, JointSampler):
        return _population_of_joint_draws(sampler, samples, examples, rounds, float(confidence))
    if isinstance(sampler, ComposedSampler):
        sampler = sampler.share
    inversion = inversion_of(sampler)
    if isinstance(sampler.family, ContinuousFamily):
        return _population_on_line(
            sampler, inversion, float(confidence), samples, counts, edges, bins, examples, released_by, rounds
        )
    if edges is not None or bins is not None:
        raise DiscreetError(
            "edges are public bins for a continuous family, and bins how many; the outcomes of this one are what its domain says: where they "
            "are cells, make it of Interval(low, high, cells=...)"
        )
    domain: Domain = sampler.family.domain
    reference = reference_on(domain, sampler.reference)
    rows = None if samples is None else rows_of(samples, domain)
    _check_released(released_by, rows, rounds)
    if rows is not None:
        if examples is not None:
            raise DiscreetError(_ONE_SAMPLE)
        found = Population(domain, rows.counts, reference, inversion, sampler.bounds, sampler, float(confidence))
        return replace(found, rows=rows)
    laws = None if examples is None else example_laws(sampler, examples)
    counted = _outcome_counts(samples, counts, domain)
    resting = None if laws is None else reweight_examples([(sampler, counted)], laws)
    return Population(domain, counted, reference, inversion, sampler.bounds, sampler, float(confidence), resting)


def _check_released(released_by: Any, rows: SampleRows | None, rounds: int | None) -> None:
    """Refuse samples that the given object did not release: rows of another length, or single samples of what releases several."""
    given = 1 if rows is None else rows.numbers.shape[1]
    if isinstance(released_by, (ComposedSampler, JointSampler)):
        if rounds is not None:
            raise DiscreetError(
                f"rounds = {rounds!r} is for samples that were released one at a time; {released_by!r} says how many there are"
            )
        if given != released_by.samples:
            raise DiscreetError(
                f"{released_by!r} releases {released_by.samples} samples of each client; give samples= with a row of as many for each client "
                f"(there {'is one sample' if given == 1 else f'are {given}'} of each)"
            )
        return
    agreed = released_by.rounds if isinstance(released_by, Agreement) else 1
    if rounds is not None:
        wanted = check_count("rounds", rounds, fix="it is how many times each client released")
        if isinstance(released_by, Agreement):
            check_count("rounds", wanted, most=agreed, fix=f"the agreement has {agreed:,}")
        if given != wanted:
            raise DiscreetError(
                f"rounds = {wanted}, but samples has {given} of each client; give a row of {wanted} for each client"
            )
        return
    if given > agreed:
        of = (
            f"the agreement has {agreed:,} rounds"
            if isinstance(released_by, Agreement)
            else f"{released_by!r} releases one"
        )
        raise DiscreetError(
            f"samples has rows of {given}, and {of}: of release(p, size={given}) pass sampler.several({given}), which drew them; if each "
            f"client released {given} times and spent the whole budget each time, pass rounds={given}"
        )


def _population_of_joint_draws(
    joint: JointSampler, samples: Any, examples: Any, rounds: int | None, confidence: float
) -> Population:
    """The population behind several samples of each client that were drawn at once, by the law of any single one of them."""
    domain: Domain = joint.family.domain
    if samples is None:
        raise DiscreetError(
            f"{joint!r} releases {joint.samples} samples of each client; counts= do not say whose they are: give samples= with a row for each"
        )
    if examples is not None:
        raise DiscreetError("examples are for one sample of each client; give those of one round")
    rows = rows_of(samples, domain)
    _check_released(joint, rows, rounds)
    assert rows is not None or joint.samples == 1
    reference = reference_on(domain, joint.each_reference)
    inversion = joint_inversion(joint)
    counted = counts_of(samples, domain) if rows is None else rows.counts
    found = Population(domain, counted, reference, inversion, joint.bounds, joint, confidence)
    return found if rows is None else replace(found, rows=rows)


def _outcome_counts(samples: Any, counts: Any, domain: Domain) -> NDArray[np.int64]:
    return checked_counts(counts, domain) if samples is None else counts_of(samples, domain)


def _population_on_line(
    sampler: Sampler[AnyFamily],
    inversion: Inversion,
    confidence: float,
    samples: Any,
    counts: Any,
    edges: Any,
    bins: Any,
    examples: Any,
    released_by: Any,
    rounds: int | None,
) -> Population:
    """The population on bins of a continuous family: those between given edges, or whole cells put together."""

    def make_population(
        domain: Domain, counted: NDArray[np.int64], reference: Floats, rows: SampleRows | None
    ) -> Population:
        return Population(domain, counted, reference, inversion, sampler.bounds, sampler, confidence, rows=rows)

    def counted_on(domain: Domain) -> tuple[NDArray[np.int64], SampleRows | None]:
        """How often each outcome came, and whose samples those are where each client released several."""
        rows = None if samples is None else rows_of(samples, domain)
        _check_released(released_by, rows, rounds)
        if rows is not None and examples is not None:
            raise DiscreetError(_ONE_SAMPLE)
        return (_outcome_counts(samples, counts, domain), None) if rows is None else (rows.counts, rows)

    if edges is not None:
        if bins is not None:
            raise DiscreetError("edges= says what the bins are; leave out bins=")
        if examples is not None:
            raise DiscreetError(
                "examples are laws on the cells of the family, which edges= need not keep to; say bins="
            )
        given = Bins(edges)
        counted, rows = counted_on(given)
        return make_population(given, counted, masses_between(sampler, given), rows)
    cells, line = cells_as_bins(sampler), line_of(sampler)
    numbered, rows = counted_on(line)
    counted = numbered[line.order]
    put = bin_cells(sampler, clients=int(counted.sum()) if rows is None else rows.clients, count=bins)
    along = None if rows is None else rows.renumber_outcomes(np.argsort(line.order), line.size)
    by_bin = None if along is None else along.renumber_outcomes(put.bin_of_cell, put.bins.size)
    finest = make_population(cells.bins, counted, cells.reference, along)
    whole = replace(make_population(put.bins, put.of(counted), put.reference, by_bin), finest=finest)
    if examples is None:
        return whole
    resting = reweight_examples([(sampler, numbered)], example_laws(sampler, examples))
    law, debiased = (put.of(each[line.order]) for each in (resting.law, resting.debiased))
    return replace(whole, reweighted=replace(resting, law=law, debiased=debiased))
