"""What an agreement states for one mechanism alone: how several samples are drawn at once, and which blocks reports name.

Blocks are written down, not only chosen again, so that an agreement keeps its blocks when the choice of them changes. Privacy holds for all
blocks that are read here (`discreet.mechanisms._report_sampler`); poor ones cost accuracy alone.
"""

from dataclasses import dataclass

from discreet.agreement._family_terms import AgreementTerms, Fields
from discreet.errors import DiscreetError, check_choice, check_count
from discreet.mechanisms import AROUND, BLOCK_KINDS, MOST_TOGETHER, BlockFamily, ReportSampler, blocks_named

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
