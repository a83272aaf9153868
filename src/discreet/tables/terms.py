"""A release under an agreement: its terms come from the document, and whoever says otherwise is refused with both named."""

from dataclasses import replace
from typing import Any

from discreet.agreement import Agreement, FamilyTerms
from discreet.errors import DiscreetError
from discreet.families import FiniteFamily
from discreet.tables.domains import Cells, Domain, Labels, Numbers, as_domain, is_whole


def agreed(name: str, given: Any, agreement: Agreement) -> Any:
    """The term of that name in the agreement. `given`, unless None, must be the same."""
    term = getattr(agreement, name)
    if given is not None and given != term:
        raise DiscreetError(
            f"{name} = {given!r} is not the {name} = {term!r} of agreement {agreement.id}; leave it out, or make an agreement "
            "that says so"
        )
    return term


def agreed_domain(agreement: Agreement, given: Any = None, other: Any = None) -> Domain:
    """The domain of an agreement; what is given (labels, a number, cells) must be the same and may be needed for the labels."""
    terms = agreement.family
    if given is not None:
        return _same(agreement, as_domain(given, other))
    if terms.interval is not None:
        return Cells(*terms.interval, terms.size, other)
    if terms.labels is None:
        return Numbers(terms.size, _as_integer(other))
    if terms.names is None:
        raise DiscreetError(
            f"agreement {agreement.id} holds a digest of its {terms.size:,} labels; give the labels too: domain= (--domain)"
        )
    integers = any(isinstance(name, int) for name in terms.names)
    return _same(agreement, Labels(terms.names, _as_integer(other) if integers else other))


def agreed_family(agreement: Agreement, domain: Domain) -> FiniteFamily:
    """The family of an agreement on the domain that a table is read with: the same labels, as texts or as numbers."""
    names = domain.labels if isinstance(domain, Labels) else None
    return replace(agreement.family, names=names).family()


def _same(agreement: Agreement, domain: Domain) -> Domain:
    """The domain, if it is the one agreed on. A list of texts that are whole numbers may stand for the numbers."""
    readings = [domain]
    if isinstance(domain, Labels) and all(isinstance(label, str) and is_whole(label) for label in domain.labels):
        readings.append(replace(domain, labels=tuple(map(int, domain.labels)), other=_as_integer(domain.other)))
    outcomes = agreement.family.outcomes
    for reading in readings:
        different = FamilyTerms.of(reading.family, reading.interval).difference(outcomes)
        if different is None:
            return reading
    different = FamilyTerms.of(domain.family, domain.interval).difference(outcomes)
    assert different is not None
    name, here, there = different
    raise DiscreetError(
        f"the domain has {name} = {here!r}, not {there!r} as in agreement {agreement.id}; use the agreed one"
    )


def _as_integer(other: Any) -> Any:
    """A text that is a whole number, as such; anything else as it is."""
    return int(other) if isinstance(other, str) and is_whole(other) else other
