"""Docstrings as the site shows them: formulas become code, since the site loads nothing that would set them."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

ROLE = re.compile(r":(\w+):`(~?)([^`]+)`")
BLOCK = re.compile(r"^([ \t]*)\.\. math:: ?(.*(?:\n(?:\1[ \t]+\S.*|[ \t]*(?=\n\1[ \t]+\S)))*)", flags=re.MULTILINE)


def plain(text: str) -> str:
    r"""Return a docstring in which roles and formulas are code.

    Examples
    --------
    >>> plain("The :math:`\\mu` of :class:`~fogline.Budget`.")
    'The `\\mu` of `Budget`.'
    """

    def block(found: re.Match[str]) -> str:
        lines = textwrap.dedent(found[2]).strip("\n")
        return f"{found[1]}```text\n{textwrap.indent(lines, found[1])}\n{found[1]}```"

    text = BLOCK.sub(block, text)
    return ROLE.sub(lambda found: f"`{found[3].rpartition('.')[2] if found[2] else found[3]}`", text).replace("``", "`")


class PlainDocstrings(griffe.Extension):
    """Change every docstring before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = plain(obj.docstring.value).replace("`" * 3 + "`", "`" * 3)
