"""A `.fog` file: nothing is lost, it says what it is, and nothing that was altered is opened."""

import hashlib
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fogline import DensitySketch, Ledger, PrivateDensity, release
from fogline.density.fog_file import decode_fog, encode_fog
from fogline.density.release_card import card_text
from fogline.releases.terms import ReleaseTerms
from fogline.testing import seeded_noise


def shape(d=1, **options):
    rng = np.random.default_rng(d)
    rows = np.column_stack([rng.gamma(2, 3, 5000), rng.normal(30, 5, 5000), rng.random(5000)])[:, :d]
    bounds = [(0.1, 60), (0, 60), (0, 1)][:d]
    return release(rows, columns=["stay", "größe", "c"][:d], bounds=bounds, epsilon=1.0, **options)


@pytest.mark.parametrize(
    ("d", "options"),
    [(1, {}), (2, {}), (3, {}), (1, {"steps": 0.1}), (2, {"delta": 1e-6, "features": "grid"}),
     (2, {"delta": 1e-6, "features": 600}), (1, {"rho": 0.5})],
    ids=["1", "2", "3", "steps", "grid", "random", "gaussian"],
)  # fmt: skip
def test_nothing_is_lost(d, options, tmp_path):
    if "rho" in options:
        terms = ReleaseTerms.checked(None, 1e-6, "add-remove", 1, **options)
        density = DensitySketch([(0, 9)], features="leaves").update([[1.0]] * 99).release_under(terms)
        assert density.leaves.counts.noise.kind == "gaussian"
    else:
        density = shape(d, **options)
    density.save(tmp_path / "a.fog")
    found = PrivateDensity.load(tmp_path / "a.fog")
    assert found == density
    assert (found.columns, found.units) == (density.columns, density.units)
    assert found.to_fog() == density.to_fog()
    density.save(tmp_path / "a.npz")
    assert PrivateDensity.load(tmp_path / "a.npz") == density


def test_units_and_receipts_are_kept():
    density = release(np.full((900, 1), 40.0), columns=["age"], bounds={"age": "age"}, epsilon=1.0)
    density = density.under(density.guarantee, {"commit": 7, "dataset": "d", "version": "1", "amount": 0.1})
    for data in (density.to_fog(), density.to_bytes()):
        found = PrivateDensity.from_bytes(data)
        assert (found.units, found.receipt) == (("years",), density.receipt)
    assert PrivateDensity.from_bytes(density.to_fog(), receipt={"commit": 8}).receipt == {"commit": 8}


def test_it_is_small_and_says_what_it_is(tmp_path):
    density = shape(2)
    density.save(tmp_path / "a.fog", date="2026-11-17")
    data = (tmp_path / "a.fog").read_bytes()
    assert len(data) < 300_000
    first, digest, line, *rest = data.split(b"\n", 3)
    assert first == b"fogline release 1"
    assert digest.decode() == hashlib.sha256(first + b"\n" + line + b"\n" + rest[0]).hexdigest()
    header = json.loads(line)
    assert header["versions"]["file"] == 1
    assert [column["name"] for column in header["card"]["columns"]] == ["stay", "größe"]
    assert header["exact"]["spec"]["bounds"][0][0] == {"float": (0.1).hex()}
    entry = header["card"]["registry"]
    assert entry["deployment"]["publication_date"] == "2026-11-17"
    assert entry["privacy_loss"] == {
        "unit_of_privacy": "record",
        "unit_of_privacy_description": "at most 1 record of each, enforced",
        "epsilon": 1.0,
        "delta": 0.0,
        "rho": None,
    }
    assert entry["dp_flavor"]["neighbour_relation"] == "add-remove"
    assert "Laplace" in entry["implementation"]["mechanism"]


def test_the_largest_file_of_two_columns_is_small():
    rng = np.random.default_rng(0)
    density = release(rng.random((200_000, 2)), bounds=[(0, 1)] * 2, epsilon=8.0)
    assert len(density.leaves.counts) > 3000
    assert len(density.to_fog()) < 300_000


def test_whatever_is_altered_or_cut_is_refused():
    data = shape().to_fog()
    rng = np.random.default_rng(1)
    places = {*range(120), *rng.integers(0, len(data), 150).tolist(), len(data) - 1}
    for place in places:
        for bit in (1, 32):
            altered = bytearray(data)
            altered[place] ^= bit
            with pytest.raises(ValueError, match=r"path: (this release|not a)"):
                PrivateDensity.from_bytes(bytes(altered))
    for length in [*range(0, 100, 7), *rng.integers(0, len(data), 40).tolist(), len(data) - 1]:
        with pytest.raises(ValueError, match=r"path: (this release|not a)"):
            PrivateDensity.from_bytes(data[:length])
    with pytest.raises(ValueError, match="cut short or altered"):
        PrivateDensity.from_bytes(data + b"\n")


def test_a_future_version_says_so():
    data = shape().to_fog().replace(b"fogline release 1", b"fogline release 12", 1)
    with pytest.raises(ValueError, match=r"version 12 of its format.* up to version 1: install a newer"):
        PrivateDensity.from_bytes(data)


def forged(**changes):
    """A file with a right hash, of a content that no release has."""
    header, arrays = decode_fog(shape().to_fog())
    for name, value in changes.items():
        where = arrays if name in arrays else header["exact"]
        where[name] = value
    return encode_fog(header, arrays)


@pytest.mark.parametrize(
    "changes",
    [
        {"counts_counts": np.array([1, 2, 3])},
        {"counts_boxes": np.array([[[0, 5]]])},
        {"noise": {"pilot": ["laplace", 1.0], "counts": ["normal", 1.0]}},
        {"noise": {"pilot": ["laplace", 1.0]}},
        {"guarantee": {"epsilon": 1.0}},
        {"spec": {"kind": "unheard of"}},
        {"spec": {}},
    ],
)
def test_a_right_hash_is_not_enough(changes):
    with pytest.raises(ValueError, match="path: this release was not written by fogline"):
        PrivateDensity.from_bytes(forged(**changes))


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "a", "type": "<f8", "shape": [1]},
        {"name": "a", "type": "<i8", "shape": [-1]},
        {"name": "a", "type": "<i8", "shape": [2**60]},
        {"name": "a", "type": "<i8", "shape": [1]},
        {"type": "<i8", "shape": [0]},
    ],
)
def test_arrays_that_cannot_be_are_refused(entry):
    whole = encode_fog({}, {})
    first, _, rest = whole.split(b"\n", 2)
    rest = rest.replace(b'"arrays":[]', b'"arrays":[' + json.dumps(entry).encode() + b"]")
    digest = hashlib.sha256(first + b"\n" + rest).hexdigest().encode()
    with pytest.raises(ValueError, match="not written by fogline"):
        decode_fog(b"\n".join([first, digest, rest]))


def test_only_whole_numbers_are_written():
    with pytest.raises(TypeError, match="whole numbers"):
        encode_fog({}, {"a": np.zeros(3)})
    limits = np.array([-(2**63), 2**63 - 1, 0])
    assert decode_fog(encode_fog({}, {"a": limits}))[1]["a"].tolist() == limits.tolist()
    assert decode_fog(encode_fog({}, {"a": np.empty((0, 2), dtype=np.int64)}))[1]["a"].shape == (0, 2)


def test_seeded_noise_is_not_certified_and_the_card_says_so():
    with seeded_noise(1):
        density = shape()
    found = PrivateDensity.from_bytes(density.to_fog())
    assert not found.guarantee.certified
    assert "NOT certified" in card_text(found.card())
    assert found.card()["registry"]["dp_flavor"]["certified"] is False


def test_the_card_in_plain_words():
    words = card_text(release(np.full((900, 1), 40.0), columns=["age"], bounds="age", epsilon=1.0).card(date="2026"))
    for part in ("the shape of age", "age: 0 to 125 years, in steps of 1", "certified by a mathematical proof",
                 "no ledger", "Published: 2026", "odds"):  # fmt: skip
        assert part in words
    fourier = shape(1, delta=1e-6, features="grid")
    assert "Fourier sums" in card_text(fourier.card())
    paid = fourier.under(fourier.guarantee, {"commit": 7, "dataset": "d", "version": "1"})
    assert "entry 7, data set 'd'" in card_text(paid.card())


# -- files that somebody else made -----------------------------------------------------------------------------


def _with_text(density, change):
    """The file of a release with another text in it, and a hash that agrees."""
    header, arrays = decode_fog(density.to_fog())
    change(header["exact"])
    return encode_fog(header, arrays)


@pytest.mark.parametrize(
    "change",
    [
        lambda exact: exact.update(columns=["\x1b]0;title\x07stay"]),
        lambda exact: exact.update(columns=["stay\nCertified"]),
        lambda exact: exact["guarantee"].update(unit="\x1b[8mperson"),
        lambda exact: exact["guarantee"].update(mechanism="\u202enoise"),
        lambda exact: exact.update(receipt={}),
        lambda exact: exact.update(receipt="paid"),
        lambda exact: exact.update(receipt={"dataset": "\x1b[2J", "commit": 1}),
    ],
)
def test_a_text_that_a_terminal_would_obey_is_refused(change):
    with seeded_noise(1):
        density = release(np.linspace(0, 9, 50)[:, None], columns=["stay"], bounds=[(0, 10)], epsilon=1.0)
    assert PrivateDensity.from_bytes(_with_text(density, lambda exact: None)) == density
    with pytest.raises(ValueError, match=r"^path: this release was not written by fogline"):
        PrivateDensity.from_bytes(_with_text(density, change))


def test_a_name_that_cannot_be_printed_is_refused_before_anything_is_paid(tmp_path):
    frame = pd.DataFrame({"a\x1b[8m": np.linspace(0, 1, 20)})
    with Ledger.create(tmp_path / "budget.db", dataset="visits", epsilon=1.0, delta=0.0) as ledger:
        with pytest.raises(ValueError, match="columns must be a text of 1 to 200 printable characters"):
            release(frame, bounds=[(0, 1)], epsilon=1.0, ledger=ledger)
        assert not [entry for entry in ledger.history() if entry.kind == "reserve"]


def _earlier(header, **arrays):
    file = io.BytesIO()
    np.savez_compressed(file, header=np.array(json.dumps(header) if not isinstance(header, str) else header), **arrays)
    return file.getvalue()


@pytest.mark.parametrize(
    "header",
    ["[1]", "[" * 100_000, "7", {"format": 1}, {"format": "fogline-density-1"}, {"format": "\x1b[2J"}],
)
def test_an_npz_that_is_no_release_is_refused_in_words(header):
    with pytest.raises(ValueError, match=r"^path: "):
        PrivateDensity.from_bytes(_earlier(header, released=np.zeros(3)))


def test_a_small_npz_that_would_be_large_is_refused_before_it_is_unpacked():
    density = PrivateDensity.load(Path(__file__).parent / "release_of_0_2_0.npz")
    with np.load(io.BytesIO(density.to_bytes())) as content:
        parts = {name: content[name] for name in content.files}
    file = io.BytesIO()
    np.savez_compressed(file, **parts, more=np.zeros(2**25 + 1))
    assert len(file.getvalue()) < 2**20
    with pytest.raises(ValueError, match=r"^path: not a release"):
        PrivateDensity.from_bytes(file.getvalue())
