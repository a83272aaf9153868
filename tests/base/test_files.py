"""Files appear whole or not at all, keep their modes, and never take the place of what must stay."""

import errno
import os
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from discreet import DiscreetError, OptimalSampler, Simplex
from discreet._base.files import atomic_folder, atomic_write, check_output_path, leads_to_same_file, refuse_same_file
from discreet.agreement import Agreement
from discreet.audit import certificate
from discreet.plots import _style as style
from discreet.release._randomness import read_secret, write_secret


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_gets_its_name_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with atomic_write(target) as file:
        file.write(b"half")
        assert not target.exists()
    assert target.read_bytes() == b"half"

    def broken() -> None:
        with atomic_write(target, replace=True) as file:
            file.write(b"new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        broken()
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("out", b"half")]


def test_a_file_that_is_there_stays_unless_it_may_be_replaced(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_bytes(b"old")
    with pytest.raises(DiscreetError, match="exists already; name another file"), atomic_write(target):
        raise AssertionError
    meanwhile = tmp_path / "meanwhile"
    with pytest.raises(DiscreetError, match="exists already"), atomic_write(meanwhile):
        meanwhile.write_bytes(b"another's")
    assert meanwhile.read_bytes() == b"another's"
    with atomic_write(target, replace=True) as file:
        file.write(b"new")
    assert target.read_bytes() == b"new"
    assert {path.name for path in tmp_path.iterdir()} == {"out", "meanwhile"}


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o666, 0o444])
def test_a_replaced_file_passes_its_mode_on(tmp_path: Path, kept: int) -> None:
    target = tmp_path / "out"
    target.write_bytes(b"old")
    target.chmod(kept)
    with atomic_write(target, replace=True) as file:
        file.write(b"new")
    assert (target.read_bytes(), mode(target)) == (b"new", kept)


@pytest.mark.parametrize(("umask", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o000, 0o666)])
def test_a_new_file_has_the_mode_that_the_umask_leaves_and_a_private_one_is_its_owners(
    tmp_path: Path, umask: int, expected: int
) -> None:
    before = os.umask(umask)
    try:
        with atomic_write(tmp_path / "plain"), atomic_write(tmp_path / "private", private=True):
            assert {mode(path) for path in tmp_path.iterdir()} == {
                0o600
            }  # what is not finished may hold what must not leave
    finally:
        os.umask(before)
    assert (mode(tmp_path / "plain"), mode(tmp_path / "private")) == (expected, 0o600)


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOSYS, errno.ENOTSUP])
def test_a_disk_without_modes_takes_plain_files_and_no_private_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fchmod", refuse)
    with atomic_write(tmp_path / "plain") as file:
        file.write(b"whole")
    assert (tmp_path / "plain").read_bytes() == b"whole"
    monkeypatch.setattr("discreet._base.files._PRIVATE_MODE", 0o400)  # which no new file has by itself
    with pytest.raises(DiscreetError, match="could not be written"), atomic_write(tmp_path / "secret", private=True):
        pass
    assert os.listdir(tmp_path) == ["plain"]


def test_only_plain_files_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "link").symlink_to(tmp_path / "precious")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name, says in [
        ("link", "is a link"), ("dangling", "is a link"), ("folder", "is a folder; name a file"), ("pipe", "is a pipe"),
        ("/dev/null", "is a device"), ("zero\0byte", "cannot be written"), ("no/folder", "cannot be written: No such file"),
    ]:  # fmt: skip
        with pytest.raises(DiscreetError, match=says), atomic_write(tmp_path / name, replace=True):
            raise AssertionError
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert (tmp_path / "precious").read_bytes() == b"precious"
    assert (tmp_path / "link").is_symlink()


def test_folders_on_the_way_are_made_where_that_is_asked_for(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "new" / "folder" / "file", folders=True) as file:
        file.write(b"whole")
    assert (tmp_path / "new" / "folder" / "file").read_bytes() == b"whole"
    with (
        pytest.raises(DiscreetError, match="its folder cannot be made"),
        atomic_write(tmp_path / "new" / "folder" / "file" / "in" / "it", folders=True),
    ):
        raise AssertionError


def test_one_file_is_recognised_by_every_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("secret").write_bytes(b"x")
    Path("folder").mkdir()
    os.link("secret", "hard")
    os.symlink("secret", "soft")
    os.symlink(tmp_path, "folder/up")
    for name in (
        "secret",
        "./secret",
        "hard",
        "soft",
        "folder/../secret",
        "folder/up/secret",
        str(tmp_path / "secret"),
    ):
        assert leads_to_same_file(name, "secret")
        with pytest.raises(DiscreetError, match="would replace the secret"):
            refuse_same_file(name, {"ledger": None, "secret": Path("secret")})
    assert leads_to_same_file("folder/up/to be made", "to be made")
    assert not leads_to_same_file("other", "secret")
    refuse_same_file("other", {"secret": Path("secret")})
    check_output_path("other")


WRITERS = {
    "agreement": """
        from discreet import OptimalSampler, Simplex
        from discreet.agreement import Agreement
        write = Agreement.of(OptimalSampler(Simplex(["x" * 100 + str(i) for i in range(200)]), epsilon=1.0)).write
    """,
    "secret": """
        from discreet.release._randomness import write_secret as write
    """,
    "certificate": """
        from discreet import OptimalSampler, Simplex
        from discreet.audit import certificate
        write = certificate(OptimalSampler(Simplex(30), epsilon=1.0)).write
    """,
    "picture": """
        from pathlib import Path
        from discreet.plots._style import empty_figure, save
        drawn = empty_figure(4.0, 3.0)
        write = lambda path: save(drawn, Path(path))
    """,
}


@pytest.mark.slow
@pytest.mark.parametrize("what", WRITERS)
def test_a_full_disk_leaves_no_part_of_a_file(tmp_path: Path, what: str) -> None:
    """Files may not grow past 16 bytes: the writer fails with one of our errors and leaves nothing under the name."""
    target = tmp_path / ("out.png" if what == "picture" else "out")
    program = textwrap.dedent(WRITERS[what]) + textwrap.dedent(f"""
        import resource, signal
        from discreet import DiscreetError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))
        try:
            write({str(target)!r})
        except DiscreetError as error:
            print(error)
    """)
    done = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True, check=False)
    assert "could not be written: File too large" in done.stdout, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fails_altogether_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says why the file could not be written, and not that its remains could not be removed."""

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    for call in ("fsync", "unlink"):
        monkeypatch.setattr(os, call, fail)
    with pytest.raises(DiscreetError, match="could not be written: Input/output error"), atomic_write(tmp_path / "out"):
        pass


@pytest.mark.slow
def test_a_kill_while_writing_leaves_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_bytes(b"old")
    program = f"""
        import time
        from discreet._base.files import atomic_write
        with atomic_write({str(target)!r}, replace=True) as file:
            file.write(b"new")
            file.flush()
            print("writing", flush=True)
            time.sleep(60)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
        writer.send_signal(signal.SIGKILL)
    assert target.read_bytes() == b"old"
    assert [path.suffix for path in tmp_path.iterdir() if path != target] == [".partial"]


def test_a_secret_that_is_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(DiscreetError, match="is not a plain file"):
        read_secret(tmp_path / "pipe")


def test_a_secret_and_an_agreement_are_never_replaced(tmp_path: Path) -> None:
    for name, write in {
        "secret": write_secret,
        "agreement": Agreement.of(OptimalSampler(Simplex(3), epsilon=1.0)).write,
        "certificate": certificate(OptimalSampler(Simplex(3), epsilon=1.0)).write,
    }.items():
        (tmp_path / name).write_bytes(b"precious")
        (tmp_path / f"{name} link").symlink_to(tmp_path / "nowhere")
        for target in (tmp_path / name, tmp_path / f"{name} link"):
            with pytest.raises(DiscreetError, match=r"exists already|is a link"):
                write(target)
        assert (tmp_path / name).read_bytes() == b"precious"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.slow
def test_a_picture_keeps_the_mode_and_does_not_go_through_links(tmp_path: Path) -> None:
    drawn = style.empty_figure(4.0, 3.0)
    (tmp_path / "out.png").write_bytes(b"old")
    (tmp_path / "out.png").chmod(0o640)
    style.save(drawn, tmp_path / "out.png")
    assert (tmp_path / "out.png").read_bytes()[:4] == b"\x89PNG"
    assert mode(tmp_path / "out.png") == 0o640
    (tmp_path / "link.png").symlink_to(tmp_path / "out.png")
    with pytest.raises(DiscreetError, match="is a link"):
        style.save(drawn, tmp_path / "link.png")


@pytest.mark.parametrize("name", ["\x00", "nowhere/result"])
def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(DiscreetError, match="cannot be made"), atomic_folder(tmp_path / name):
        raise AssertionError("nothing is written")
