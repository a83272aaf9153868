"""A child of a fork works, or says at once that it cannot and what to do: it never hangs."""

import subprocess
import sys

import pytest

PROGRAM = """
import multiprocessing
import polars as pl
import discreet as dc
from discreet.tables import Secret

def release(how):
    rows = pl.DataFrame({{"who": [1, 2, 3] * 10, "what": [0, 1, 2] * 10}})
    table = rows.to_arrow() if how == "arrow" else rows
    try:
        found = dc.tables.sample(table, client="who", value="what", domain=3, epsilon=1.0, secret=Secret(bytes(32)))
    except dc.DiscreetError as problem:
        return str(problem)
    return found.num_rows

if __name__ == "__main__":
    {first}
    with multiprocessing.get_context({method!r}).Pool(1) as pool:
        for how in ("frame", "arrow"):
            print(pool.apply_async(release, (how,)).get(timeout=60))
"""
USED = {
    "by us": "release('frame')",
    "by us through Arrow": "release('arrow')",
    "by its user": "pl.DataFrame({'a': [1, 2]}).group_by('a').len()",
}


def told(first: str, method: str, path: str) -> list[str]:
    with open(path, "w") as file:
        file.write(PROGRAM.format(first=first, method=method))
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("first", USED)
def test_a_fork_after_polars_was_used_is_told_what_to_do(first: str, tmp_path: object) -> None:
    for line in told(USED[first], "fork", f"{tmp_path}/program.py"):
        assert "forked after polars" in line
        assert "get_context('spawn')" in line


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_what_it_is_told_to_do_works(method: str, tmp_path: object) -> None:
    assert told(USED["by us"], method, f"{tmp_path}/program.py") == ["3", "3"]


@pytest.mark.slow
def test_a_fork_before_the_first_release_works(tmp_path: object) -> None:
    assert told("pass", "fork", f"{tmp_path}/program.py") == ["3", "3"]
