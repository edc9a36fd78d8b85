"""Every mechanism has a proof beside it, and what a proof quotes is in the code."""

import re
from pathlib import Path

import pytest

import fogline.mechanisms

FOLDER = Path(fogline.mechanisms.__file__).parent
MODULES = [path for path in sorted(FOLDER.glob("*.py")) if not path.name.startswith("_") and path.stem != "entropy"]


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_proof_quotes_real_lines(module):
    proof = module.with_name(f"{module.stem}.proof.md").read_text()
    quotes = re.findall(r"```python\n(.*?)```", proof, flags=re.DOTALL)
    assert quotes, "a proof quotes the code that it is about"
    assert "QED" in proof
    for quote in quotes:
        assert squeezed(quote) in squeezed(module.read_text()), quote


def test_a_drifted_quote_would_be_noticed():
    source = (FOLDER / "gaussian.py").read_text()
    assert squeezed("noise = source.gaussian(scale, size)") in squeezed(source)
    assert squeezed("noise = source.gaussian(0.8 * scale, size)") not in squeezed(source)
