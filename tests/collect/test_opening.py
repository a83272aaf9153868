"""Stores by their names."""

from pathlib import Path
from typing import Any

import pytest

from discreet import DiscreetError
from discreet.collect import open_store
from discreet.collect._sqlite import store_display_name


@pytest.mark.parametrize("where", ["", None, 3, b"store", ["store"]])
def test_what_is_no_name_is_refused(where: Any) -> None:
    with pytest.raises(DiscreetError, match="is not the name of a file"):
        open_store(where)


@pytest.mark.parametrize("where", ["mysql://host/store", "sqlite:///store", "http://host/", "://"])
def test_other_addresses_are_refused(where: str) -> None:
    with pytest.raises(DiscreetError, match="a store is a file, or postgresql://"):
        open_store(where)


def test_a_store_that_is_not_there_is_made_only_where_that_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(DiscreetError, match="there is no store"):
        open_store(tmp_path / "store", create=False)
    assert not (tmp_path / "store").exists()
    open_store(tmp_path / "store").close()
    open_store(tmp_path / "store", create=False).close()


def test_a_password_is_not_shown() -> None:
    assert store_display_name("postgresql://me:hunter2@host:5433/store") == "postgresql://me@host:5433/store"
    assert store_display_name("postgresql:///store?password=hunter2") == "postgresql:///store"
    assert store_display_name("samples.db") == "samples.db"
