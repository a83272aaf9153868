"""Records that lie on disk for a while: unnamed, read back as they were, and nobody else's folders touched."""

import io
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.errors import DiscreetError
from discreet.tables._sources._files import ScratchFile, remove_stale_scratch_folders, using_path_of_spooled_stream


def test_arrays_come_back_as_they_were(tmp_path: Path) -> None:
    scratch = ScratchFile(tmp_path)
    rng = np.random.default_rng(0)
    first: list[NDArray[Any]] = [rng.integers(0, 9, 1000), np.empty(0), rng.random(3), np.arange(7, dtype=np.uint8)]
    second: list[NDArray[Any]] = [rng.random(100_000)[::2], np.empty(0, dtype=np.uint32)]
    blocks = [scratch.append_arrays(first), scratch.append_arrays(second)]
    for arrays, block in zip((second, first), reversed(blocks), strict=True):
        for array, found in zip(arrays, scratch.read_arrays(block), strict=True):
            assert array.dtype == found.dtype
            assert np.array_equal(array, found)
    assert list(tmp_path.iterdir()) == []
    scratch.close()


def test_a_file_without_a_name_can_be_opened_by_this_process(tmp_path: Path) -> None:
    with using_path_of_spooled_stream(io.BytesIO(b"records"), tmp_path) as path:
        assert Path(path).read_bytes() == b"records"
        assert list(tmp_path.iterdir()) == []


def test_a_folder_that_will_not_do_is_named(tmp_path: Path) -> None:
    with pytest.raises(DiscreetError, match="nowhere: No such file or directory; name another folder"):
        ScratchFile(tmp_path / "nowhere")


def test_only_stale_folders_of_earlier_versions_are_swept(tmp_path: Path) -> None:
    old = time.time() - 2 * 86400
    made = {
        "discreet-abcd_123": ["0", "17", "input"],  # left by a kill
        "discreet-fresh_12": ["3"],  # perhaps in use
        "discreet-other_12": ["notes.txt"],  # somebody's own
        "discreet-long_name_of_another_kind": ["0"],
        "other-abcd_123": ["0"],
    }
    for name, files in made.items():
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / file).write_bytes(b"records")
            if "fresh" not in name:
                os.utime(tmp_path / name / file, (old, old))
        if "fresh" not in name:
            os.utime(tmp_path / name, (old, old))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "discreet-link_123").symlink_to(tmp_path / "elsewhere")
    remove_stale_scratch_folders(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*made, "elsewhere", "discreet-link_123"} - {
        "discreet-abcd_123"
    }
