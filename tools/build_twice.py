"""Build sdist and wheel of every distribution twice, in separate folders, and fail if the bytes differ.

    python tools/build_twice.py            leaves them in dist/

Only files that git tracks are built from. They are copied to two folders and built there under another time zone and
hash seed, with ``SOURCE_DATE_EPOCH`` at the time of the last commit unless it is set. setuptools stamps an sdist with
the present time and the builder's name; the archive is packed again without them. Last, every tracked file of a package
must be in its wheel: a template or a proof that is left out is an error here, not at a user's. The one file that git
does not track and that is built in all the same is the documentation site, which ``make docs`` makes.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SITE = "src/fogline/cli/site.zip"
SURROUNDINGS = ({"TZ": "UTC", "PYTHONHASHSEED": "1"}, {"TZ": "Asia/Tokyo", "PYTHONHASHSEED": "2"})


def distributions(root: Path) -> list[Path]:
    """Folders that hold a distribution: the root, and ``research`` once it is one."""
    return [folder for folder in (root, root / "research") if (folder / "pyproject.toml").is_file()]


def tracked(folder: Path) -> list[str]:
    """Files that git tracks below a folder and that exist, as paths relative to it."""
    said = subprocess.run(["git", "ls-files", "-z"], cwd=folder, capture_output=True, check=True).stdout
    names = sorted(name for name in said.decode().split("\0") if name)
    return [name for name in names if (folder / name).is_file()]


def to_build(folder: Path) -> list[str]:
    """Files that a distribution is built from: those that git tracks, and the documentation site of the first one.

    Raises
    ------
    ValueError
        If the site was not built.
    """
    names = tracked(folder)
    if not any(name.startswith(SITE.rpartition("/")[0]) for name in names):
        return names
    if not (folder / SITE).is_file():
        raise ValueError(f"there is no {SITE}: `make docs` builds it")
    return sorted({*names, SITE})


def source_date(root: Path) -> int:
    """Seconds since 1970 that stand for the time of the build.

    Raises
    ------
    ValueError
        If ``SOURCE_DATE_EPOCH`` is not a whole number, or before 1980, which a wheel cannot hold.
    """
    text = os.environ.get("SOURCE_DATE_EPOCH")
    if text is None:
        asked = ["git", "log", "-1", "--format=%ct"]
        text = subprocess.run(asked, cwd=root, capture_output=True, text=True, check=True).stdout
    if not text.strip().isdigit() or int(text) < 315_532_800:
        raise ValueError(f"SOURCE_DATE_EPOCH must be whole seconds since 1970, from 1980 on, got {text.strip()!r}")
    return int(text)


def copy(folder: Path, names: list[str], to: Path) -> None:
    """Copy files with plain modes: the builder's umask must not show."""
    for name in names:
        target = to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / name, target)
        target.chmod(0o755 if os.access(folder / name, os.X_OK) else 0o644)


def repack(sdist: Path, epoch: int) -> None:
    """Pack an sdist again: files sorted, one time, no owner, and no time or name in the gzip header."""
    content = io.BytesIO()
    with tarfile.open(sdist) as old, tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    with sdist.open("wb") as file, gzip.GzipFile("", "wb", mtime=epoch, fileobj=file) as packed:
        packed.write(content.getvalue())


def build(folder: Path, names: list[str], place: Path, epoch: int, surroundings: dict[str, str]) -> dict[str, bytes]:
    """Build in a copy, and return the archives by name."""
    copy(folder, names, place / "source")
    environment = os.environ | surroundings | {"SOURCE_DATE_EPOCH": str(epoch)}
    command = [sys.executable, "-m", "build", "--outdir", str(place / "built"), str(place / "source")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the build failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    for sdist in (place / "built").glob("*.tar.gz"):
        repack(sdist, epoch)
    return {path.name: path.read_bytes() for path in sorted((place / "built").iterdir())}


def left_out(names: list[str], wheel: bytes) -> list[str]:
    """Tracked files of a package, below ``src``, that its wheel does not hold."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        content = set(archive.namelist())
    return sorted({name.removeprefix("src/") for name in names if name.startswith("src/")} - content)


def complaints(first: dict[str, bytes], second: dict[str, bytes], names: list[str]) -> list[str]:
    """What is wrong with two builds of the same files, one sentence each."""
    wheels = [name for name in first if name.endswith(".whl")]
    said = [] if len(wheels) == 1 and len(first) == 2 else [f"a wheel and an sdist were wanted, got {sorted(first)}"]
    if first.keys() != second.keys():
        said.append(f"the builds differ in their names: {sorted(first)}, {sorted(second)}")
    said += [
        f"{name} differs between the builds" for name in first.keys() & second.keys() if first[name] != second[name]
    ]
    for wheel in wheels:
        said += [f"{wheel} lacks {name}: add it to package-data" for name in left_out(names, first[wheel])]
    return sorted(said)


def build_distribution(folder: Path, epoch: int, out: Path) -> list[str]:
    """Build one distribution twice, keep the first build, and return what is wrong."""
    names = to_build(folder)
    with tempfile.TemporaryDirectory(prefix="one-") as one, tempfile.TemporaryDirectory(prefix="other-") as other:
        first = build(folder, names, Path(one), epoch, SURROUNDINGS[0])
        second = build(folder, names, Path(other), epoch, SURROUNDINGS[1])
    out.mkdir(parents=True, exist_ok=True)
    for name, content in first.items():
        (out / name).write_bytes(content)
        print(f"{hashlib.sha256(content).hexdigest()}  {name}  {len(content)} bytes")
    return complaints(first, second, names)


def main(words: list[str] | None = None) -> int:
    """Build, compare and keep; return the exit code."""
    parser = argparse.ArgumentParser(description="Build sdist and wheel twice and compare the bytes.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where the archives go")
    out = parser.parse_args(words).out
    try:
        epoch = source_date(ROOT)
        problems = [said for folder in distributions(ROOT) for said in build_distribution(folder, epoch, out)]
    except (ValueError, RuntimeError, subprocess.CalledProcessError) as problem:
        problems = [str(problem)]
    if problems:
        print("\n".join(problems), file=sys.stderr)
    else:
        print("both builds are the same, byte for byte")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
