"""Reproducible builds: what a second packing removes, and every way in which two builds may be wrong."""

import io
import subprocess
import tarfile
import zipfile

import pytest

from tools import build_twice


def wheel(*names):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return held.getvalue()


def sdist(path, *, mtime, order, owner, mode):
    with tarfile.open(path, "w:gz") as archive:
        for name in order:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uname, member.mode = 1, mtime, owner, mode
            archive.addfile(member, io.BytesIO(name[-1:].encode()))
    return path


def test_packing_again_removes_time_owner_order_and_umask(tmp_path):
    one = sdist(tmp_path / "one.tar.gz", mtime=1.5e9, order=["x/a", "x/b"], owner="ada", mode=0o600)
    two = sdist(tmp_path / "two.tar.gz", mtime=1.6e9, order=["x/b", "x/a"], owner="bob", mode=0o664)
    assert one.read_bytes() != two.read_bytes()
    for path in (one, two):
        build_twice.repack(path, 1_700_000_000)
    assert one.read_bytes() == two.read_bytes()
    with tarfile.open(one) as archive:
        assert archive.getnames() == ["x/a", "x/b"]
        assert archive.extractfile("x/b").read() == b"b"
        assert {member.mtime for member in archive} == {1_700_000_000}


def test_what_a_build_may_do_wrong_is_said():
    good = {"x.whl": wheel("x/a.py"), "x.tar.gz": b"1"}
    names = ["pyproject.toml", "src/x/a.py", "research/src/y/b.py"]
    assert build_twice.complaints(good, dict(good), names) == []
    assert build_twice.complaints(good, good | {"x.tar.gz": b"2"}, names) == ["x.tar.gz differs between the builds"]
    assert build_twice.complaints(good, good, [*names, "src/x/t.html"]) == [
        "x.whl lacks x/t.html: add it to package-data"
    ]
    assert "a wheel and an sdist were wanted" in build_twice.complaints({"x.tar.gz": b"1"}, {"x.tar.gz": b"1"}, [])[0]
    other = {"y.whl": good["x.whl"], "x.tar.gz": b"1"}
    assert "differ in their names" in build_twice.complaints(good, other, names)[0]


def test_distributions_are_folders_with_a_pyproject(tmp_path):
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "research").mkdir()
    assert build_twice.distributions(tmp_path) == [tmp_path]
    (tmp_path / "research" / "pyproject.toml").touch()
    assert build_twice.distributions(tmp_path) == [tmp_path, tmp_path / "research"]


def test_the_time_is_that_of_the_last_commit_or_as_given(monkeypatch, tmp_path):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert build_twice.source_date(tmp_path) == 1_700_000_000
    for bad in ("yesterday", "-5", "1e9", "0", ""):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", bad)
        with pytest.raises(ValueError, match="SOURCE_DATE_EPOCH must be"):
            build_twice.source_date(tmp_path)
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a"}
    for name, value in {**who, "GIT_COMMITTER_DATE": "1600000000 +0000", "GIT_CONFIG_GLOBAL": "/dev/null"}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "kept").write_text("x")
    (tmp_path / "left").write_text("x")
    for words in (["init", "-q"], ["add", "kept"], ["commit", "-q", "-m", "one"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    assert build_twice.source_date(tmp_path) == 1_600_000_000
    assert build_twice.tracked(tmp_path) == ["kept"]


def test_a_copy_has_plain_modes(tmp_path):
    (tmp_path / "from").mkdir()
    for name, mode in (("a", 0o600), ("b", 0o700)):
        (tmp_path / "from" / name).write_text("x")
        (tmp_path / "from" / name).chmod(mode)
    build_twice.copy(tmp_path / "from", ["a", "b"], tmp_path / "to")
    assert [(tmp_path / "to" / name).stat().st_mode & 0o777 for name in "ab"] == [0o644, 0o755]


def test_builds_that_fail_or_differ_are_an_exit_code(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(build_twice, "distributions", lambda root: [root])
    monkeypatch.setattr(build_twice, "tracked", lambda folder: [])
    contents = iter([b"1", b"1", b"1", b"2"])
    monkeypatch.setattr(build_twice, "build", lambda *_: {"x.whl": wheel("a"), "x.tar.gz": next(contents)})
    assert build_twice.main(["--out", str(tmp_path)]) == 0
    assert (tmp_path / "x.tar.gz").read_bytes() == b"1"
    assert build_twice.main(["--out", str(tmp_path)]) == 1
    assert "x.tar.gz differs" in capsys.readouterr().err

    def fails(*_):
        raise RuntimeError("the build failed")

    monkeypatch.setattr(build_twice, "build", fails)
    assert build_twice.main(["--out", str(tmp_path)]) == 1
    assert "the build failed" in capsys.readouterr().err
