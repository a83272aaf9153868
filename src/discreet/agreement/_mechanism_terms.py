"""What an agreement states for one mechanism alone: several samples drawn at once, blocks of reports, and mechanisms of others.

Blocks are written down, not only chosen again, so that an agreement keeps its blocks when the choice of them changes. Privacy holds for all
blocks that are read here (`discreet.mechanisms._report_sampler`); poor ones cost accuracy alone.

A mechanism of somebody else's is named by its package and version, and by the digest of its integer box. Privacy is a statement about the
box, so that code which was changed without a new version cannot change what was agreed on.
"""

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.agreement._family_terms import AgreementTerms, Fields
from discreet.domain import canonical, check_digest, digest
from discreet.errors import DiscreetError, check_choice, check_count
from discreet.families import FiniteFamily
from discreet.mechanisms import (
    AROUND,
    BLOCK_KINDS,
    MOST_TOGETHER,
    BlockFamily,
    OwnSampler,
    ReportSampler,
    blocks_named,
    installed_mechanism,
)
from discreet.privacy import Privacy

JOINT = Fields.of("samples around")


@dataclass(frozen=True, eq=False)
class JointTerms(AgreementTerms):
    """How several samples of each client are drawn at once: how many, and from a box around what.

    Args:
        samples: how many samples of each client, at least 2.
        around: "envelope" or "product".

    Raises:
        DiscreetError: for terms out of range.
    """

    FIELDS = ("samples", "around")

    samples: int
    around: str

    def __post_init__(self) -> None:
        fix = "one sample of each client is agreed on without joint"
        object.__setattr__(
            self, "samples", check_count("joint.samples", self.samples, least=2, most=MOST_TOGETHER, fix=fix)
        )
        check_choice("joint.around", self.around, AROUND)


BLOCKS = Fields(frozenset({"kind"}), frozenset(name for names in BLOCK_KINDS.values() for name in names))
_LARGEST_PARAMETER = 1 << 31  # what q, t, c and w may be at most; JSON numbers hold it


@dataclass(frozen=True, eq=False)
class BlockTerms(AgreementTerms):
    """The blocks of outcomes that reports name, as an agreement states them.

    Args:
        kind: "values", "masks", "ranks" or "affine".
        w: outcomes of a block, of masks and ranks.
        q: a prime, of affine blocks {x : (<a, x> + s) mod q < c}.
        t: the digits of an outcome in base q.
        c: the width of the window.

    Raises:
        DiscreetError: for a kind that there is not, and parameters that are missing, out of range or another kind's.
    """

    FIELDS = ("kind", "w", "q", "t", "c")

    kind: str
    w: int | None = None
    q: int | None = None
    t: int | None = None
    c: int | None = None

    def __post_init__(self) -> None:
        check_choice("blocks.kind", self.kind, BLOCK_KINDS)
        needed = BLOCK_KINDS[self.kind]
        for name in ("w", "q", "t", "c"):
            value = getattr(self, name)
            if name in needed:
                number = check_count(f"blocks.{name}", value, most=_LARGEST_PARAMETER, fix=f"{self.kind} need it")
                object.__setattr__(self, name, number)
            elif value is not None:
                raise DiscreetError(f"blocks.{name} = {value!r} has no meaning for {self.kind}; leave it out")

    @classmethod
    def of(cls, sampler: ReportSampler) -> "BlockTerms":
        """The terms of a sampler's blocks."""
        return cls(sampler.blocks.name, **sampler.blocks.parameters)

    @property
    def _parameters(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in BLOCK_KINDS[self.kind]}

    def on(self, size: int) -> BlockFamily:
        """The blocks themselves, on so many outcomes."""
        return blocks_named(self.kind, size, self._parameters)


OWN = Fields.of("name package package_version box", "parameters")
OWN_MECHANISM = "own"  # what `mechanism` says where the field `own` names the mechanism
_LONGEST_TEXT = 200


@dataclass(frozen=True, eq=False)
class OwnTerms(AgreementTerms):
    """A mechanism that another package offers under the entry points `discreet.mechanisms`.

    Args:
        name: of the mechanism, and of the entry point.
        package: that offers it.
        package_version: the version of the package.
        box: the digest of the integer box, lower bounds first, as 64-bit integers in little-endian order.
        parameters: the further arguments of the mechanism, as JSON values.

    Raises:
        DiscreetError: for fields that are no such texts, or parameters that JSON cannot state.
    """

    FIELDS = ("name", "package", "package_version", "box", "parameters")

    name: str
    package: str
    package_version: str
    box: str
    parameters: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for field in ("name", "package", "package_version"):
            value = getattr(self, field)
            if not isinstance(value, str) or not 1 <= len(value) <= _LONGEST_TEXT:
                raise DiscreetError(f"own.{field} = {value!r} is not a text of 1 to {_LONGEST_TEXT} characters")
        check_digest("own.box", self.box)
        if self.parameters is not None:
            if not isinstance(self.parameters, Mapping) or not self.parameters:
                raise DiscreetError(f"own.parameters = {self.parameters!r} is not an object with fields; leave it out")
            object.__setattr__(self, "parameters", _as_json(dict(self.parameters)))

    @classmethod
    def of(cls, sampler: OwnSampler) -> "OwnTerms":
        """The terms of a sampler whose class an installed package offers."""
        kind, package, version = installed_mechanism(sampler.name)
        if type(sampler) is not kind:
            raise DiscreetError(
                f"{sampler!r} cannot be agreed on: the package {package} offers another class as {sampler.name!r}"
            )
        return cls(sampler.name, package, version, box_digest(sampler), dict(sampler.parameters) or None)

    def sampler(self, family: FiniteFamily, privacy: Privacy) -> OwnSampler:
        """The mechanism itself, of the package and the version that were agreed on."""
        kind, package, version = installed_mechanism(self.name, (self.package, self.package_version))
        try:
            found = kind.from_parameters(family, privacy, deepcopy(dict(self.parameters or {})))
        except (TypeError, ValueError, ArithmeticError) as error:  # of parameters that the class does not take
            raise DiscreetError(f"mechanism {self.name!r} does not take the parameters agreed on: {error}") from None
        if box_digest(found) != self.box:
            raise DiscreetError(
                f"mechanism {self.name!r} of {package} {version} has another box here than the one agreed on ({self.box}); its code or "
                "its arithmetic has changed: nothing is released"
            )
        return found


def box_digest(sampler: OwnSampler) -> str:
    """The digest of the integers that bound every weight."""
    bounds = (np.broadcast_to(bound, sampler.box.size) for bound in (sampler.lattice.lower, sampler.lattice.upper))
    return digest(np.stack(list(bounds)).astype("<i8").tobytes())


def _as_json(parameters: dict[str, Any]) -> Any:
    """The parameters as every reader of the agreement gets them."""
    try:
        return json.loads(canonical(parameters))
    except (TypeError, AttributeError):
        raise DiscreetError(
            f"own.parameters = {parameters!r} are not JSON values; return numbers, texts, lists and dicts from `parameters`"
        ) from None
