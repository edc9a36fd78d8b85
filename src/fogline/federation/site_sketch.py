r"""A site's sketch, the sum of several, and their file.

Every site counts its records into a sketch of the same public specification. The sum of the sketches is the sketch of
all records, to the last integer, so one release of the sum is as good as a release of the pooled table. What a person
can do to the sum is bounded by the sum of what they can do at each site:

.. math:: c = \sum_s c_s \quad\text{(a person may be at all sites)}, \qquad
          c = \max_s c_s \quad\text{(declared disjoint)}.

A merge is by names: a site's sketch counts once however often it is sent, and two sketches of one site that come from
different runs are refused. Masked sketches (:mod:`fogline.federation.masks`) can be read once all sites are there.

The file of a site's sketch: a header in JSON, the secret integers, a version; nothing is unpickled.

The state of a sketch as one vector of a public length: what masks are added to.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fogline._typing import IntArray, LedgerLike, WordArray
from fogline._validation import check_ledger, check_max_contributions, check_name
from fogline.accounting.guarantee import ROWS
from fogline.density.leaves import LeafSpec
from fogline.density.private_density import PrivateDensity
from fogline.density.random_spec import RandomSpec, Spec, spec_from_dict
from fogline.federation.masks import PairKeys, check_site, context_of, key_check, masked
from fogline.mechanisms.randomness import SystemSource
from fogline.releases.density_sketch import DensitySketch
from fogline.releases.origins import (
    Origin,
    check_runs,
    common_payer,
    keep_at,
    known_origin,
    require_apart,
    write_secret,
)
from fogline.releases.sketch_file import NOTHING, Provenance
from fogline.releases.terms import ReleaseTerms

__all__ = [
    "FORMAT",
    "Header",
    "Member",
    "SiteSketch",
    "merge_sites",
    "read_file",
    "release_file",
    "state_of",
    "state_vector",
    "vector_size",
    "write_file",
]

FORMAT = "fogline-site-2"
EARLIER = "fogline-site-1"
"""Without ids of the sketches' records; what it says of units was given by hand, and is taken on trust."""

NOTICE = "SECRET: exact counts of private records. Guard this file as you guard the records, and never publish it."
MASKED = "SECRET: masked counts of private records. Send it to nobody but the merging party."


@dataclass(frozen=True)
class Member:
    """One site's part: its name, the run that made it, and how many records a person may have there.

    ``enforced`` says that an engine cut the records of each unit, ``on_trust`` that nobody knows whether one did.
    """

    site: str
    run: str
    max_contributions: int = 1
    unit: str = "record"
    enforced: bool = False
    on_trust: bool = False

    def __post_init__(self) -> None:
        check_site(self.site)
        check_name(self.run, "run")
        check_max_contributions(self.max_contributions)
        check_name(self.unit, "unit")
        for name in ("enforced", "on_trust"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be true or false")
        if self.enforced and self.unit in ROWS:
            raise ValueError(f"unit: {self.unit!r} is a row, and rows are not cut")

    @classmethod
    def of(
        cls,
        cut: Provenance,
        site: str,
        run: str,
        *,
        max_contributions: int | None,
        unit: str | None,
        enforced: bool | None,
    ) -> Member:
        """A site's part as its sketch says it was counted, with what only the site can know.

        Parameters
        ----------
        cut : Provenance
            Of the sketch.
        site, run : str
        max_contributions, unit, enforced
            What the site says; None where the sketch is to say it. Nothing may go beyond what the sketch says.
        """
        most = cut.most if max_contributions is None else max_contributions
        name = (cut.unit or "record") if unit is None else unit
        me = cls(site, run, most, name, on_trust=cut.on_trust)
        if cut.unit is None:
            if enforced:
                raise ValueError(
                    "enforced: the records of this sketch were not cut by a unit, as fogline.releases.sketch does"
                )
            return me
        if me.unit in ROWS:
            raise ValueError(f"unit: records were cut to {cut.most} of each {cut.unit}, and are not released for rows")
        if me.max_contributions < cut.most:
            raise ValueError(f"max_contributions must be at least {cut.most}: this many of each {cut.unit} were left")
        # a site may say less than its sketch does, not more
        return replace(me, enforced=cut.enforced and enforced is not False)

    @property
    def provenance(self) -> Provenance:
        """How its records were counted."""
        if self.unit in ROWS:
            return Provenance(on_trust=self.on_trust)
        return Provenance(self.unit, self.max_contributions, self.enforced, self.on_trust)


@dataclass(frozen=True)
class Header:
    """What a file says besides the integers; public but for its company."""

    spec: Spec
    pass_name: str
    members: tuple[Member, ...]
    columns: tuple[str, ...] | None
    roster: tuple[str, ...]
    checks: dict[str, str]
    signed: bool
    runs: dict[str, str]


def write_file(path: str | Path, header: Header, state: tuple[Any, ...]) -> None:
    """Write one array of masked integers, or the two of a sketch's state."""
    content = {
        "format": FORMAT,
        "secret": True,
        "notice": MASKED if len(state) == 1 else NOTICE,
        "pass": header.pass_name,
        "spec": header.spec.to_dict(),
        "columns": header.columns,
        "members": [vars(member) for member in header.members],
        "roster": header.roster,
        "checks": header.checks,
        "signed": header.signed,
        "runs": header.runs,
    }
    arrays: Any = {f"state_{i}": part for i, part in enumerate(state)}
    file = io.BytesIO()
    np.savez_compressed(file, header=np.array(json.dumps(content)), **arrays)
    write_secret(path, file.getvalue())


def read_file(path: str | Path) -> tuple[Header, list[NDArray[Any]]]:
    """Read a file of this version; everything else is refused by one line."""
    source = Path(path)
    if not source.is_file():
        raise FileNotFoundError(f"path: there is no file {str(path)!r}")
    try:
        # A pickle in a file from another site could run code here.
        with source.open("rb") as file, np.load(file, allow_pickle=False) as data:
            content = json.loads(str(data["header"]))
            version = content.get("format")
            known = version in (FORMAT, EARLIER)
            state = [data[f"state_{i}"] for i in range(len(data.files) - 1)] if known else []
    except Exception:
        raise ValueError(f"path: {source.name} is not a sketch of format {FORMAT}") from None
    if not known:
        raise ValueError(f"path: {source.name} is of format {version!r}, not {FORMAT!r}")
    try:
        members, runs = _members(content) if version == FORMAT else _earlier_members(content)
        header = Header(
            spec=spec_from_dict(content["spec"]),
            pass_name=check_name(content["pass"], "pass"),
            members=members,
            columns=None if content["columns"] is None else tuple(content["columns"]),
            roster=tuple(content["roster"]),
            checks=dict(content["checks"]),
            signed=bool(content["signed"]),
            runs=runs,
        )
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"path: the header of {source.name} is damaged") from None
    if len(state) not in (1, 2) or (len(state) == 1 and (state[0].dtype != np.uint64 or state[0].ndim != 1)):
        raise ValueError(f"path: {source.name} is damaged")
    return header, state


def _members(content: dict[str, Any]) -> tuple[tuple[Member, ...], dict[str, str]]:
    return tuple(Member(**member) for member in content["members"]), check_runs(content["runs"])


def _earlier_members(content: dict[str, Any]) -> tuple[tuple[Member, ...], dict[str, str]]:
    """Members of a file of version 1, which may have taken a cut at five for one at one, or for none."""
    given = tuple(Member(**member) for member in content["members"])
    # what version 1 says of units was typed in by hand
    members = tuple(replace(member, enforced=False, on_trust=True) for member in given)
    payer = common_payer(content["payers"])
    return members, check_runs(dict.fromkeys((member.run for member in members), payer))


def state_vector(sketch: DensitySketch) -> IntArray:
    """Secret: the whole state as one vector of a public length."""
    if isinstance(sketch.spec, RandomSpec):
        count, sums = sketch.state()
        return np.concatenate([count, sums.ravel()])
    # all cells, empty ones too: which of them are empty is secret, and masks need a public length
    return sketch.table().ravel()


def vector_size(spec: Spec) -> int:
    """Public: the length of a state as one vector."""
    return 1 + 2 * spec.n_features if isinstance(spec, RandomSpec) else math.prod(spec.cells)


def state_of(vector: IntArray, spec: Spec) -> tuple[IntArray, IntArray]:
    """Inverse of :func:`state_vector`."""
    if isinstance(spec, RandomSpec):
        return vector[:1], vector[1:].reshape(2, -1)
    keys = np.flatnonzero(vector)
    return keys.astype(np.int64), vector[keys]


@dataclass(frozen=True, repr=False, eq=False)
class SiteSketch:
    """The sketch of one site or the sum of several; secret until it is released.

    Made by :meth:`of`, :meth:`load` and :func:`merge_sites`.

    Attributes
    ----------
    pass_name : str
        The pass over the data that all sites agreed on.
    members : tuple
        Whose records are in it.
    roster : tuple of str
        With masks, all sites that must be in it before it can be read.

    Examples
    --------
    >>> import numpy as np
    >>> from fogline import DensitySketch
    >>> from fogline.federation import SiteSketch, merge_sites
    >>> rng = np.random.default_rng(0)
    >>> north, south = (DensitySketch([(0, 10)]).update(rng.normal(m, 1, (900, 1))) for m in (3, 7))
    >>> parts = [SiteSketch.of(north, "north", "2026"), SiteSketch.of(south, "south", "2026")]
    >>> whole = merge_sites([*parts, parts[0]])
    >>> whole
    SiteSketch(pass '2026', sites north, south)
    >>> density = whole.release(epsilon=1.0, delta=1e-6, disjoint_persons=True)
    >>> print(density.guarantee)
    Certified: adding or removing one record changes the probability of anything published by a factor of at most
    exp(1) = 2.72, except with probability 1e-06 (discrete Gaussian noise on Fourier sums, 2 sites, each person declared
    to be at one of them; mu = ...).
    """

    spec: Spec
    pass_name: str
    members: tuple[Member, ...]
    columns: tuple[str, ...] | None = None
    roster: tuple[str, ...] = ()
    checks: dict[str, str] = field(default_factory=dict)
    signed: bool = False
    sketch: DensitySketch | None = None
    masked: WordArray | None = None
    origins: tuple[Origin, ...] = ()
    files: dict[Path, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        sketch: DensitySketch,
        site: str,
        pass_name: str,
        *,
        max_contributions: int | None = None,
        unit: str | None = None,
        enforced: bool | None = None,
        columns: Sequence[str] | None = None,
        keys: PairKeys | None = None,
    ) -> SiteSketch:
        """Wrap a site's sketch for a merge.

        Parameters
        ----------
        sketch : DensitySketch
        site, pass_name : str
            Who, and in which pass over the data, as agreed by all.
        max_contributions : int, optional
            Most records of a person at this site; by default one, or as many as the sketch was cut to. Fewer are
            refused.
        unit : str, optional
            What one record is, or whom ``max_contributions`` counts for; by default "record", or the unit that the
            sketch was cut by. A merge needs one name at all sites: give the common one where columns are called
            otherwise.
        enforced : bool, optional
            Whether an engine saw to it that nobody has more: taken from the sketch, and refused if it was not cut.
        columns : sequence of str, optional
            Public names of the columns; must be the same at all sites.
        keys : PairKeys, optional
            Mask the counts, so that whoever merges learns only the sum.
        """
        sketch.require_own()
        # A fresh id per run tells a sketch that comes twice from a second count of the same site.
        run = SystemSource().bytes(16).hex()
        me = Member.of(sketch.provenance, site, run, max_contributions=max_contributions, unit=unit, enforced=enforced)
        names = None if columns is None else tuple(map(str, columns))
        plain = cls(sketch.spec, check_name(pass_name, "pass"), (me,), names, signed=sketch.signed, sketch=sketch)
        return plain if keys is None else plain._mask(keys)

    def _mask(self, keys: PairKeys) -> SiteSketch:
        me = self.members[0].site
        if keys.site != me:
            raise ValueError(f"keys are those of site {keys.site!r}, not of {me!r}")
        context = self._context(keys.sites)
        # Before the masks are made: a pass that fails now is spent, which is the safe side.
        keys.use_for(self.pass_name)
        checks = {f"{me}+{other}": key_check(me, other, key, context) for other, key in keys.keys.items()}
        assert self.sketch is not None
        hidden = masked(state_vector(self.sketch), me, keys.keys, context)
        for origin in self.sketch.origins:  # the masked counts go elsewhere, as a file does
            origin.stored = True
        return replace(self, roster=keys.sites, checks=checks, sketch=None, masked=hidden, origins=self.sketch.origins)

    def _context(self, sites: Sequence[str]) -> bytes:
        agreed = {"spec": self.spec.to_dict(), "columns": self.columns}
        digest = hashlib.sha256(context_of(agreed)).hexdigest()
        return context_of({"pass": self.pass_name, "sites": list(sites), "agreed": digest})

    def __repr__(self) -> str:
        shown = f"SiteSketch(pass {self.pass_name!r}, sites {', '.join(self.sites)}"
        return f"{shown}, masked: waits for {', '.join(self.missing)})" if self.missing else f"{shown})"

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a SiteSketch holds secret counts and is not pickled: use save(), and guard the file")

    @property
    def sites(self) -> tuple[str, ...]:
        """Sites whose records are in it."""
        return tuple(sorted(member.site for member in self.members))

    @property
    def missing(self) -> tuple[str, ...]:
        """With masks, sites without which nothing can be read; none without masks, or once all are there."""
        here = {member.site for member in self.members}
        return tuple(name for name in self.roster if name not in here)

    @property
    def unit(self) -> str:
        """What the records of all its sites were cut by, or declared for; "record" where every row counts."""
        cut = self.provenance.unit
        return "record" if cut is None else cut

    @property
    def provenance(self) -> Provenance:
        """How the records of all its sites were counted, for a person who is at all of them."""
        # joined one by one: bounds of a person who is at several sites add up
        whole = NOTHING
        for member in self.members:
            whole = whole.joined(member.provenance)
        return whole

    # -- merging --------------------------------------------------------------------------------------------

    def merge(self, other: SiteSketch) -> SiteSketch:
        """Return the sum; refused, with what differs, for sketches that do not belong together."""
        return merge_sites([self, other])

    def _is_among(self, runs: Mapping[str, str]) -> bool:
        """Whether all of it was counted already; refused if a part of it was, or if a site counted anew."""
        both = [member for member in self.members if member.site in runs]
        for member in both:
            # two counts of one site are two data sets: adding both would double its records
            if runs[member.site] != member.run:
                raise ValueError(
                    f"site {member.site!r} sent two sketches of different runs for pass {self.pass_name!r}"
                )
        # a sum cannot be taken apart: a site that is in both would count twice
        if both and len(both) < len(self.members):
            raise ValueError(
                f"site {both[0].site!r} is in two sums that hold other sites too: merge the sites' own files"
            )
        return bool(both)

    def _plus(self, others: Sequence[SiteSketch]) -> SiteSketch:
        """The sum with others, all of different sites: each array, each check and each origin is looked at once."""
        parts = [self, *others]
        whole = replace(
            self,
            members=tuple(sorted((m for part in parts for m in part.members), key=lambda member: member.site)),
            checks=_waiting_checks(parts),
            signed=any(part.signed for part in parts),
        )
        if self.roster and not set(whole.sites) <= set(self.roster):
            raise ValueError("sketches: a site is not among those that were to be masked with")
        hidden = [part.masked for part in parts if part.masked is not None]
        if not hidden:
            return replace(whole, sketch=_merged_sketches(parts, whole.provenance))
        # exact and masked numbers do not add up to either
        if len(hidden) < len(parts):
            raise ValueError("sketches: some are masked and some are not")
        # a copy of the same records under two names of sites would count them twice
        require_apart(*(part.origins for part in parts))
        files = {path: runs for part in parts for path, runs in part.files.items()}
        whole = replace(whole, origins=tuple(origin for part in parts for origin in part.origins), files=files)
        summed = hidden[0].copy()
        for words in hidden[1:]:
            summed += words  # modulo 2**64
        return replace(whole, masked=summed) if whole.missing else whole._read(summed)

    def _read(self, summed: WordArray) -> SiteSketch:
        """Read the sum once all masks have cancelled."""
        numbers = summed.view(np.int64)
        # Drawn anew each time: at a known limit one site could see by a refusal what the others have counted.
        limit = _limit()
        if not -limit < int(numbers.min()) <= int(numbers.max()) < limit:
            raise ValueError("the masks do not cancel: a sketch was changed on its way")
        sketch = DensitySketch.from_state(
            self.spec,
            state_of(numbers, self.spec),
            signed=self.signed,
            provenance=self.provenance,
            origins=self.origins,
            files=self.files,
            cut=True,
        )
        return replace(self, sketch=sketch, masked=None, checks={}, origins=(), files={})

    def _require_same(self, other: SiteSketch) -> None:
        self.spec.require_same(other.spec)
        for name, label in (("pass_name", "pass"), ("columns", "columns"), ("roster", "sites to mask with")):
            if getattr(self, name) != getattr(other, name):
                raise ValueError(f"sketches differ in {label}: {getattr(self, name)} and {getattr(other, name)}")

    # -- files ----------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write a file for its owner alone (mode 0600); without masks it is as secret as the records."""
        place = Path(path).resolve()
        origins = self.origins if self.sketch is None else self.sketch.kept_at(place)
        if self.sketch is None:
            keep_at(origins, place, self.files)
        header = Header(
            spec=self.spec,
            pass_name=self.pass_name,
            members=self.members,
            columns=self.columns,
            roster=self.roster,
            checks=self.checks,
            signed=self.signed,
            runs={origin.run: origin.payer for origin in origins},
        )
        state = (self.masked,) if self.sketch is None else self.sketch.state()
        write_file(place, header, state)

    @classmethod
    def load(cls, path: str | Path) -> SiteSketch:
        """Read a file written by :meth:`save`; one of another version is refused."""
        place = Path(path).resolve()
        header, state = read_file(place)
        whole = cls(
            header.spec,
            header.pass_name,
            header.members,
            header.columns,
            header.roster,
            header.checks,
            header.signed,
            origins=tuple(known_origin(run, payer) for run, payer in header.runs.items()),
            files={place: tuple(header.runs)},
        )
        provenance = whole.provenance  # refused here for sums of unlike units, which version 1 made
        if len(state) == 1:
            if state[0].shape != (vector_size(header.spec),):
                raise ValueError(f"path: {Path(path).name} is damaged")
            return replace(whole, masked=state[0])
        sketch = DensitySketch.from_state(
            header.spec,
            (state[0], state[1]),
            signed=header.signed,
            provenance=provenance,
            origins=whole.origins,
            files=whole.files,
            cut=bool(header.roster),  # as it was when the masks had cancelled
        )
        return replace(whole, sketch=sketch, origins=(), files={})

    # -- the release ----------------------------------------------------------------------------------------

    def terms(
        self,
        epsilon: object,
        delta: object,
        neighbours: object = "add-remove",
        *,
        disjoint_persons: bool = False,
        ledger: LedgerLike | None = None,
    ) -> ReleaseTerms:
        """What a release of the sum promises, from public facts alone."""
        # A person may be at every site unless the parties declare otherwise: bounds add up.
        bounds = [member.max_contributions for member in self.members]
        contributions = max(bounds) if disjoint_persons else sum(bounds)
        names = {member.unit for member in self.members}
        unit = names.pop() if len(names) == 1 else "record"  # several are names of rows
        pure = isinstance(self.spec, LeafSpec)
        terms = ReleaseTerms.checked(epsilon, delta, neighbours, contributions, unit, allow_pure=pure, ledger=ledger)
        loose = not all(member.enforced for member in self.members)
        terms = replace(terms, declared=loose or (disjoint_persons and len(bounds) > 1))
        if len(bounds) == 1:
            return terms
        where = "each person declared to be at one of them" if disjoint_persons else "a person may be at all of them"
        return replace(terms, remark=f"{len(bounds)} sites, {where}")

    def release(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        neighbours: str = "add-remove",
        disjoint_persons: bool = False,
        ledger: LedgerLike | None = None,
    ) -> PrivateDensity:
        """Add noise once and return the publishable density of all sites' records.

        Parameters
        ----------
        epsilon, delta, neighbours, ledger
            As for :meth:`fogline.DensitySketch.release`. The ledger is the merging party's; a pass of the same sites
            from the same runs is one question.
        disjoint_persons : bool
            Declare that no person is at two sites. Else the noise is for a person who is at all of them.
        """
        terms = self.terms(epsilon, delta, neighbours, disjoint_persons=disjoint_persons, ledger=ledger)
        if self.missing:
            raise ValueError(f"sites {', '.join(self.missing)} are missing: masks cancel only in the sum over all")
        assert self.sketch is not None
        facts = {"pass": self.pass_name, "sites": [[member.site, member.run] for member in self.members]}
        # with one site there is nothing to be disjoint from
        apart = disjoint_persons and len(self.members) > 1
        return self.sketch.release_under(terms, ledger, columns=self.columns, facts=facts, disjoint_persons=apart)


def _limit() -> int:
    """A number from 2^61 to 2^62 that nobody can foresee: sums of counts are far below, masks that are left beyond."""
    return 2**61 + (int.from_bytes(SystemSource().bytes(8), "big") >> 3)


def merge_sites(parts: Sequence[SiteSketch]) -> SiteSketch:
    """Return the sum of sketches, each site counted once, in whichever order and however often they came.

    Examples
    --------
    >>> from fogline import DensitySketch
    >>> north, south = (SiteSketch.of(DensitySketch([(0, 9)]).update([[x]]), x_site, "spring")
    ...                 for x, x_site in ((3.0, "north"), (5.0, "south")))
    >>> merge_sites([north, south, north])
    SiteSketch(pass 'spring', sites north, south)
    """
    if not parts:
        raise ValueError("parts must be at least one sketch")
    # the largest sum first: single files that are in it already are then recognised and skipped
    first, *others = sorted(parts, key=lambda part: -len(part.members))
    # All at once: pair by pair, every step would copy the checks of all sites so far, and k sites would cost k^3.
    runs = {member.site: member.run for member in first.members}
    unit, fresh = first.unit, []
    for part in others:
        first._require_same(part)
        if part._is_among(runs):
            continue
        if part.unit != unit:
            raise ValueError(
                f"sketches differ in unit: {unit} and {part.unit}; sites that cut by one unit give it one name"
            )
        runs.update((member.site, member.run) for member in part.members)
        fresh.append(part)
    return first._plus(fresh) if fresh else first


def _waiting_checks(parts: Sequence[SiteSketch]) -> dict[str, str]:
    """Checks that wait for the other site of their pair; refused where the two of a pair differ."""
    waiting: dict[str, str] = {}
    for part in parts:
        for name, value in part.checks.items():
            one, two = name.split("+")
            # both sites of a pair write the same check: the second takes the first off the list
            found = waiting.pop(f"{two}+{one}", None)
            if found is None:
                waiting[name] = value
            elif found != value:
                one, two = sorted((one, two))
                raise ValueError(f"keys: sites {one!r} and {two!r} masked with different keys; let both load them anew")
    return waiting


def _merged_sketches(parts: Sequence[SiteSketch], provenance: Provenance) -> DensitySketch:
    """Sum of sketches without masks, in a tree, so that each is added up a few times only."""
    sketches = [part.sketch for part in parts if part.sketch is not None]
    # by twos: one after the other, the first would be copied for every site
    while len(sketches) > 1:
        rest = sketches[len(sketches) // 2 * 2 :]
        sketches = [one.merge_as(two, provenance) for one, two in zip(sketches[::2], sketches[1::2], strict=False)]
        sketches += rest
    return sketches[0]


def release_file(path: str | Path, *, ledger: LedgerLike | None = None, **options: Any) -> PrivateDensity:
    """Release the sketch in a file; it is marked as released before any noise is drawn.

    The file itself is marked, and the ids of its records are noted in the user's state directory, so that copies of the
    file on this machine are known too.

    Parameters
    ----------
    path : str or Path
    ledger, **options
        As for :meth:`SiteSketch.release`.

    Returns
    -------
    PrivateDensity

    Examples
    --------
    >>> import tempfile
    >>> from fogline import DensitySketch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     SiteSketch.of(DensitySketch([(0, 9)]).update([[3.0]]), "north", "spring").save(f"{folder}/north.sketch")
    ...     release_file(f"{folder}/north.sketch", epsilon=1.0, delta=1e-6).guarantee.certified
    True
    """
    check_ledger(ledger)
    inspect.signature(SiteSketch.release).bind(None, ledger=ledger, **options)  # a slip of the pen must not cost a file
    return SiteSketch.load(path).release(ledger=ledger, **options)
