"""Run a README as a newcomer does: its Python and its commands, in order, in an empty folder.

    python tests/readme.py install README.md        print what the README says to install
    python tests/readme.py run README.md            run every block; the exit code says whether all of them ran

``make test-readme`` makes an environment with that line and nothing else, and runs the second command in it. So this
file uses the standard library alone. Blocks of Python are one doctest; indented blocks are shell commands, and each has
to succeed. ``make`` commands set up an environment themselves: of these only the names are checked.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def install_line(text: str) -> str:
    """Return the packages that the README installs from a checkout.

    Examples
    --------
    >>> print(install_line("Do: `pip install '.[cli]'`."))
    .[cli]
    """
    found = re.findall(r"`pip install '(\.\[[a-z,]+\])'`", text)
    if len(set(found)) != 1:
        raise SystemExit(f"the README must have one line that installs the checkout, found {found}")
    return found[0]


def blocks(text: str) -> list[tuple[str, str]]:
    """Return the blocks of code in order: ``("python", text)`` and ``("shell", command)``.

    Examples
    --------
    >>> blocks("A\\n\\n    fogline a \\\\\\n        --b   # why\\n\\n```python\\n>>> 1\\n1\\n```\\n")
    [('shell', 'fogline a --b'), ('python', '>>> 1\\n1\\n')]
    """
    found: list[tuple[str, str]] = []
    fence: list[str] | None = None
    pending = ""
    for line in text.splitlines():
        if line.startswith("```"):
            if fence is None:
                fence = [line[3:]]
            else:
                found.append((fence[0], "".join(f"{part}\n" for part in fence[1:])))
                fence = None
        elif fence is not None:
            fence.append(line)
        elif line.startswith("    ") and (pending or not line.startswith("     ")):
            words = pending + re.sub(r"\s+#\s.*$", "", line).strip()
            pending = words.removesuffix("\\").rstrip() + " " if words.endswith("\\") else ""
            if not pending:
                found.append(("shell", words))
    return found


def run(readme: Path) -> int:
    """Run all blocks; return how many failed."""
    text = readme.read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (readme.parent / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    parser, runner, known = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=FLAGS), {}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    failed = count = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for kind, source in blocks(text):
            count += 1
            print(f"-- {source.splitlines()[0][:110]}", flush=True)
            if kind == "python":
                test = parser.get_doctest(source, known, f"block {count}", str(readme), 0)
                failed += bool(runner.run(test, clear_globs=False).failed)
                known = test.globs
            elif kind != "shell":
                failed += 1
                print(f"a block of {kind!r}, which nobody runs")
            elif source.startswith("make "):
                failed += shlex.split(source)[1] not in targets
            else:
                done = subprocess.run(source, shell=True, env={**os.environ, "PATH": path}, check=False)
                failed += done.returncode != 0
        os.chdir(readme.parent)
    print(f"{count} blocks of {readme.name}, {failed} failed")
    return failed


if __name__ == "__main__":
    command, file = sys.argv[1:]
    if command == "install":
        print(install_line(Path(file).read_text(encoding="utf-8")))
    else:
        raise SystemExit(1 if run(Path(file).resolve()) else 0)
