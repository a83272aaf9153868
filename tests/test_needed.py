"""A test that cannot run says why, and fails where every test has to run."""

import pytest

from tests.needed import cannot_run, needed_module


@pytest.mark.parametrize("said", ["", "0", "false", "False"])
def test_elsewhere_it_is_left_out_with_its_reason(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setenv("CI", said)
    with pytest.raises(pytest.skip.Exception, match="no network"):
        cannot_run("no network")
    with pytest.raises(pytest.skip.Exception, match="pip install nothing"):
        needed_module("no_such_module", "pip install nothing")


@pytest.mark.parametrize("said", ["1", "true", "True", "yes"])
def test_under_continuous_integration_it_fails(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setenv("CI", said)
    with pytest.raises(pytest.fail.Exception, match="no network; with CI set no test may be left out"):
        cannot_run("no network")
    with pytest.raises(pytest.fail.Exception, match="pip install nothing"):
        needed_module("no_such_module", "pip install nothing")


def test_what_is_there_is_imported() -> None:
    assert needed_module("json", "").loads("1") == 1
