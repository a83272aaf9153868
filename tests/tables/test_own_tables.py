"""Tables by a mechanism of somebody's own: under a secret the same samples again, or an error; by the integers of its own law."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import discreet as dc
from discreet import Agreement, DiscreetError, Simplex
from discreet.ledger import PopulationLedger
from discreet.release import BITS, integer_laws_and_messages, pseudo_random_word_rows
from discreet.tables import Request, read_secret, sample, write_secret
from discreet.tables._drawing import Kernel
from discreet.tables._parts import clients_and_records_from_arrow
from tests.mechanism_packages import Install
from tests.tables.small_tables import by_client

LABELS = ["a", "b", "c"]


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    write_secret(tmp_path / "secret")
    return tmp_path / "secret"


def table(clients: int = 200) -> pl.DataFrame:
    return pl.DataFrame({"client": np.repeat(np.arange(clients), 4), "value": ["a", "a", "a", "b"] * clients})


def drawn(agreement: Agreement, secret: Any, rows: Any = None, **more: Any) -> dict[Any, Any]:
    held = table() if rows is None else rows
    return by_client(sample(held, client="client", value="value", agreement=agreement, secret=secret, **more))


@pytest.mark.parametrize("target", ["", "obscurity:LinearReveal"])
def test_a_secret_gives_the_same_samples_again(install: Install, secret: Path, target: str) -> None:
    agreement = Agreement.of(install(target=target)(Simplex(LABELS), epsilon=1.0), rounds=2)
    first = drawn(agreement, secret)
    assert drawn(agreement, secret, table().sample(fraction=1.0, shuffle=True, seed=3)) == first
    assert drawn(agreement, secret, round=2) != first
    few = table().filter(pl.col("client") < 150)
    with pytest.raises(
        DiscreetError, match=r"was released on other data .*, or the law of 'reveal-or-obscure' answered otherwise"
    ):
        drawn(agreement, secret, few)


def test_samples_are_those_of_the_integer_weights_and_the_keyed_words(install: Install, secret: Path) -> None:
    """The law that is drawn is in its box in integers, and the words decide alone which outcome it gives."""
    sampler = install()(Simplex(LABELS), epsilon=1.0)
    agreement = Agreement.of(sampler)
    request = Request(client="client", value="value", agreement=agreement, secret=read_secret(secret))
    job = request.job(table().schema)
    lists = pl.DataFrame(
        {"client": [3, 9], "outcomes": [[0, 0, 0, 1], [2]]}, schema_overrides={"outcomes": pl.List(pl.UInt32)}
    )
    columns = clients_and_records_from_arrow(
        lists["client"].to_arrow(), lists["outcomes"].to_arrow(), None, weighted=False
    )
    outcomes = Kernel(job).draw(columns).outcomes
    messages = integer_laws_and_messages(3, columns, 0, 2)[1]
    uniform = (pseudo_random_word_rows(job.key, messages)[:, 0] >> np.uint64(64 - BITS)).astype(object)
    for place, p in enumerate([[0.75, 0.25, 0.0], [0.0, 0.0, 1.0]]):
        weights = [int(each) for each in sampler.weights(p)]
        assert all(low <= each <= high for low, each, high in zip(*_bounds(sampler, weights), strict=True))
        ends = np.cumsum(np.array(weights, dtype=object))
        assert outcomes[place] == int((ends <= int(uniform[place])).sum())


def _bounds(sampler: Any, weights: list[int]) -> tuple[list[int], list[int], list[int]]:
    low, high = (np.broadcast_to(each, 3).tolist() for each in (sampler.lattice.lower, sampler.lattice.upper))
    return low, weights, high


def test_a_law_that_changes_for_public_clients_is_refused_before_the_draw(install: Install, secret: Path) -> None:
    agreement = Agreement.of(install(target="obscurity:Fickle")(Simplex(LABELS), epsilon=1.0))
    with pytest.raises(DiscreetError, match="gives another result when it is called again"):
        drawn(agreement, secret)
    assert len(drawn(agreement, None)) == 200  # every run is a release of its own


def test_a_law_that_changes_in_secret_never_gives_two_samples(install: Install, secret: Path) -> None:
    """Public clients do not show it. The second release draws other samples, and is an error before any of them is there."""
    agreement = Agreement.of(install(target="obscurity:Forgetful")(Simplex(LABELS), epsilon=1.0))
    drawn(agreement, secret, table(300))
    with pytest.raises(DiscreetError, match="answered otherwise for the same data"):
        drawn(agreement, secret, table(300))


def test_a_ledger_keeps_the_sample_whatever_the_law_answers(install: Install, tmp_path: Path, secret: Path) -> None:
    agreement = Agreement.of(install(target="obscurity:Forgetful")(Simplex(LABELS), epsilon=1.0))
    books = PopulationLedger.create(tmp_path / "books", budget=1.0, secret=read_secret(secret))
    first = drawn(agreement, None, table(300), ledger=books)
    assert drawn(agreement, None, table(300), ledger=books) == first
    assert drawn(agreement, None, table(300).with_columns(value=pl.lit("c")), ledger=books) == first


def test_another_version_is_refused_before_anything_is_noted(install: Install, tmp_path: Path, secret: Path) -> None:
    agreement = Agreement.of(install()(Simplex(LABELS), epsilon=1.0))
    books = PopulationLedger.create(tmp_path / "books", budget=1.0, secret=read_secret(secret))
    install(version="1.3")
    with pytest.raises(DiscreetError, match=r"install obscurity==1\.2"):
        drawn(agreement, None, ledger=books)
    install()
    assert len(drawn(agreement, None, ledger=books)) == 200


def test_changed_code_under_the_same_version_is_an_error_where_a_sample_changes(install: Install, secret: Path) -> None:
    """The box is the same, so that the agreement still holds: privacy does. Another law draws other samples, which are not released."""
    agreement = Agreement.of(install()(Simplex(LABELS), epsilon=1.0))
    first = drawn(agreement, secret)
    install(code="\nRevealOrObscure.law = lambda self, p: np.full(len(p), 1 / len(p))\n")
    with pytest.raises(DiscreetError, match="answered otherwise for the same data"):
        drawn(agreement, secret)
    install(code="\nOTHER = 1\n")
    assert drawn(agreement, secret) == first


def test_an_earth_movers_sampler_draws_under_a_secret(secret: Path) -> None:
    agreement = Agreement.of(dc.TransportSampler(np.arange(5.0), epsilon=1.0))
    rows = pl.DataFrame({"client": np.arange(40), "value": np.arange(40) % 5})
    assert drawn(agreement, secret, rows) == drawn(agreement, secret, rows)


def test_the_kernel_alone_does_not_draw_by_an_own_law(install: Install, secret: Path) -> None:
    """It keeps no record: a law that answers differently would give two samples from one random integer."""
    agreement = Agreement.of(install()(Simplex(LABELS), epsilon=1.0))
    job = Request(client="client", value="value", agreement=agreement, secret=read_secret(secret)).job(table().schema)
    batch = pa.RecordBatch.from_pydict({"client": [7], "outcomes": [[0]]})
    with pytest.raises(DiscreetError, match="the kernel does not draw by 'reveal-or-obscure'"):
        Kernel(job)(batch)
