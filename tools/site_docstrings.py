"""Docstrings as the site shows them: formulas become code, since the site loads nothing that would set them."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

ROLE = re.compile(r":(\w+):`(~?)([^`]+)`")
BLOCK = re.compile(r"^([ \t]*)\.\. math:: ?(.*(?:\n(?:\1[ \t]+\S.*|[ \t]*(?=\n\1[ \t]+\S)))*)", flags=re.MULTILINE)

SIGNS = {
    "varepsilon": "ε", "delta": "δ", "mu": "μ", "lambda": "λ", "rho": "ρ", "varrho": "ρ", "omega": "ω", "theta": "θ",
    "sigma": "σ", "alpha": "α", "beta": "β", "tau": "τ", "varphi": "φ", "phi": "φ", "nu": "ν", "kappa": "κ", "pi": "π",
    "eta": "η", "ell": "l", "Sigma": "Σ", "Delta": "Δ", "Lambda": "Λ", "Phi": "Φ", "Gamma": "Γ", "sum": "Σ",
    "prod": "Π", "int": "∫", "partial": "∂", "nabla": "∇", "le": "≤", "leq": "≤", "ge": "≥", "ne": "≠", "in": "∈",
    "cdot": "·", "times": "×", "propto": "∝", "approx": "≈", "pm": "±", "sim": "~", "mid": "|", "infty": "∞",
    "dots": "...", "top": "T", "setminus": "\\", "mapsto": "->", "iff": "<=>", "oplus": "⊕", "lfloor": "⌊",
    "rfloor": "⌋", "langle": "⟨", "rangle": "⟩", "lVert": "|", "rVert": "|", "qquad": "   ", "quad": "  ",
}  # fmt: skip
"""Commands of LaTeX, and what is written in their place."""
SIZES = re.compile(r"\\(?:[Bb]igg?[lr]?|left|right|mathrm|text|operatorname|mathbb|begin\{\w+\}|end\{\w+\}|,|;|!)\*?")


def readable(formula: str) -> str:
    r"""Return a formula of LaTeX as one line of text that can be read.

    Examples
    --------
    >>> readable(r"\hat\varepsilon = \max\left(0,\ \frac{a - \delta}{\sqrt{b}}\right)")
    'ε^ = max(0, (a - δ)/(√b))'
    """
    text = SIZES.sub("", formula)
    text = re.sub(r"\\[td]?frac\s*(\\[A-Za-z]+|\w)", r"\\frac{\1}", text)  # a half may be written without braces
    text = re.sub(r"\\frac(\{[^{}]*\})\s*(\\[A-Za-z]+|\w)", r"\\frac\1{\2}", text)
    text = re.sub(r"\\sqrt\s+(\\[A-Za-z]+|\w)", r"\\sqrt{\1}", text)
    one = r"\{([^{}]*)\}"
    for _ in range(4):  # braces within braces: the inner ones first
        text = re.sub(r"\\sqrt" + one, lambda found: f"√{_grouped(found[1])}", text)
        text = re.sub(r"\\[td]?frac" + one * 2, lambda found: f"{_grouped(found[1])}/{_grouped(found[2])}", text)
        text = re.sub(r"\\(?:hat|widehat|tilde|bar|overline|underline)" + one, r"\1^", text)
        text = re.sub(r"([_^])" + one, lambda found: found[1] + _grouped(found[2]), text)
        text = re.sub(r"(?<![\\\w}])" + one, r"\1", text)
    text = re.sub(r"\\(?:hat|widehat|tilde|bar) ?(\\[A-Za-z]+|\w)", r"\1^", text)
    text = re.sub(r"(?<!\\)[{}&]", "", text)
    text = re.sub(r"\\([A-Za-z]+) ?(?=(\W|_|$))?", _sign, text)
    return re.sub(r" +([,)])", r"\1", re.sub(r"\\(\W)", r"\1", text).replace("( ", "("))


def _sign(found: re.Match[str]) -> str:
    """What stands for a command: relations keep the space after them, names have one before a letter."""
    sign = SIGNS.get(found[1], found[1])
    relation = sign in ("≤", "≥", "≠", "∈", "·", "×", "∝", "≈", "±", "~", "|", "->", "<=>")
    return f"{sign} " if relation or (found[1] not in SIGNS and found[2] is None) else sign


def _grouped(text: str) -> str:
    """Brackets around more than one word of a formula."""
    return text if re.fullmatch(r"\\?\w+", text.strip()) else f"({text})"


def plain(text: str) -> str:
    r"""Return a docstring in which roles and formulas are code.

    Examples
    --------
    >>> plain("The :math:`\\mu` of :class:`~fogline.Budget`.")
    'The `μ` of `Budget`.'
    """

    def block(found: re.Match[str]) -> str:
        lines = re.sub(r" {2,}", " ", readable(" ".join(textwrap.dedent(found[2]).split())))
        return f"{found[1]}```text\n{textwrap.indent(lines, found[1])}\n{found[1]}```"

    def role(found: re.Match[str]) -> str:
        shown = readable(found[3]) if found[1] == "math" else found[3].rpartition(".")[2] if found[2] else found[3]
        return f"`{shown}`"

    return re.sub(r"(?<!`)``(?!`)", "`", ROLE.sub(role, BLOCK.sub(block, text)))


class PlainDocstrings(griffe.Extension):
    """Change every docstring before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = plain(obj.docstring.value)
