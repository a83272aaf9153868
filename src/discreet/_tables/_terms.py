"""A release under an agreement: its terms come from the document, and whoever says otherwise is refused with both named."""

from dataclasses import replace
from typing import Any

import numpy as np

from discreet._tables._coding import Coding, is_whole
from discreet.agreement import Agreement, ContinuousTerms
from discreet.domain import Digested, Domain, Labels, as_domain
from discreet.errors import DiscreetError
from discreet.families import FiniteFamily
from discreet.mechanisms._carriers._line import LineCells
from discreet.mechanisms._sampler import AnyFamily


def agreed_term(name: str, given: Any, agreement: Agreement) -> Any:
    """The term of that name in the agreement. `given`, unless None, must be the same."""
    term = getattr(agreement, name)
    if given is not None and given != term:
        raise DiscreetError(
            f"{name} = {given!r} is not the {name} = {term!r} of agreement {agreement.id}; leave it out, or make an agreement "
            "that says so"
        )
    return term


def agreed_coding(agreement: Agreement, given: Any = None, other: Any = None) -> Coding:
    """How values are coded under an agreement; a domain that is given must be the agreed one, and may be needed for its labels."""
    if isinstance(agreement.family, ContinuousTerms):
        refuse_domain(agreement, given)
        return Coding(LineCells.of(agreement.sampler()), other)
    domain = agreement.domain if given is None else _same(agreement, as_domain(given))
    if isinstance(domain, Digested):
        raise DiscreetError(
            f"agreement {agreement.id} holds a digest of its {domain.size:,} labels; give the labels too: domain= (--domain)"
        )
    if agreement.other is not None:
        named = domain.to_samples(np.asarray(agreement.other))
        if other is not None and str(other) != str(named):
            raise DiscreetError(f"other = {other!r} is not the {named!r} of agreement {agreement.id}; leave it out")
        other = named
    try:
        return Coding(domain, other)
    except DiscreetError as error:
        raise DiscreetError(f"{error} (agreement {agreement.id})") from None


def refuse_domain(agreement: Agreement, given: Any) -> None:
    """Refuse a domain beside an agreement on a continuous family, which says what its cells are."""
    if given is not None:
        raise DiscreetError(f"domain = {given!r}: agreement {agreement.id} says what its cells are; leave it out")


def agreed_clients(agreement: Agreement, coding: Coding) -> AnyFamily:
    """The family of an agreement, on outcomes or continuous."""
    terms = agreement.family
    return terms.family() if isinstance(terms, ContinuousTerms) else agreed_family(agreement, coding)


def agreed_family(agreement: Agreement, coding: Coding) -> FiniteFamily:
    """The family of an agreement on the domain that a table is read with, which says what its labels are."""
    return agreement.on_outcomes.on(coding.domain).family()


def _same(agreement: Agreement, domain: Domain) -> Domain:
    """The domain, if it is the one agreed on. A list of texts that are whole numbers may stand for the numbers."""
    readings = [domain]
    if isinstance(domain, Labels) and all(isinstance(label, str) and is_whole(label) for label in domain.labels):
        readings.append(Labels(tuple(map(int, domain.labels))))
    for reading in readings:
        if replace(agreement.on_outcomes, domain=reading).difference(agreement.on_outcomes) is None:
            return reading
    different = replace(agreement.on_outcomes, domain=domain).difference(agreement.on_outcomes)
    assert different is not None
    name, here, there = different
    raise DiscreetError(
        f"the domain has {name} = {here!r}, not {there!r} as in agreement {agreement.id}; use the agreed one"
    )
