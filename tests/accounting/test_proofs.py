"""Ids of proofs never vanish: they are in ledgers, saved densities and site files that nobody can change any more."""

from pathlib import Path

import fogline
import fogline_research
from fogline.accounting import Guarantee
from fogline.accounting.proofs import PROOFS, proof_file, proof_id

PACKAGE = Path(fogline.__file__).parent
RESEARCH = Path(fogline_research.__file__).parent

STORED = [
    "above-threshold",
    "ball",
    "bernstein",
    "clustering",
    "contribution-bound",
    "count",
    "density-sketch",
    "dp-em",
    "dpgan",
    "exponential",
    "gaussian-learner",
    "gaussian-noise",
    "hellinger",
    "hellinger-privacy",
    "laplace-noise",
    "lattice",
    "magnitudes",
    "mixture",
    "mixture-aggregate",
    "mixture-recursive",
    "mixture-spherical",
    "mixture-step",
    "mollified-cells",
    "mollified-draws",
    "noisy-histogram",
    "one-cluster",
    "private-pca",
    "random-features",
    "regression",
    "sampler",
    "shared-cap",
    "site-sketch",
    "slabs",
    "spherical-gaussian-learner",
    "stable-histogram",
    "strata",
    "terrific-ball",
]
"""Ids that were given once. Add to them; never take one away."""

STORED_PATHS = {
    "sketch/density_sketch.proof.md": "density-sketch",
    "sketch/random_features.proof.md": "random-features",
    "sketch/strata.proof.md": "strata",
    "estimators/hellinger.proof.md": "hellinger",
    "estimators/clustering.proof.md": "clustering",
    "estimators/mixture.proof.md": "mixture",
    "estimators/_mixture_aggregate.proof.md": "mixture-aggregate",
    "estimators/_mixture_recursive.proof.md": "mixture-recursive",
    "estimators/_mixture_spherical.proof.md": "mixture-spherical",
    "locate/gaussian.proof.md": "gaussian-learner",
    "locate/spherical_gaussian.proof.md": "spherical-gaussian-learner",
    "locate/private_pca.proof.md": "private-pca",
    "locate/magnitudes.proof.md": "magnitudes",
    "locate/one_cluster.proof.md": "one-cluster",
    "locate/terrific_ball.proof.md": "terrific-ball",
    "mechanisms/mollified_draws.proof.md": "mollified-draws",
    "mechanisms/mollified_cells.proof.md": "mollified-cells",
}
"""Paths that guarantees held before there were ids."""


def test_no_id_vanishes():
    assert set(STORED) <= set(PROOFS)


def test_every_proof_has_an_id_and_every_id_a_proof():
    own = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.proof.md")]
    theirs = [path.relative_to(RESEARCH.parent) for path in RESEARCH.rglob("*.proof.md")]
    assert set(PROOFS.values()) == set(map(str, [*own, *theirs]))


def test_ids_share_a_file_only_where_it_has_a_proof_for_each():
    for name in set(PROOFS.values()):
        file = RESEARCH.parent / name if name.startswith("fogline_research/") else PACKAGE / name
        sections = [line for line in file.read_text().splitlines() if line.startswith("# ")]
        assert len(sections) == list(PROOFS.values()).count(name), name


def test_stored_paths_still_lead_to_their_proof():
    assert {path: proof_id(path) for path in STORED_PATHS} == STORED_PATHS
    for path, name in STORED_PATHS.items():
        assert len((PACKAGE / proof_file(path)).read_text()) > 500, path
        old = Guarantee.certified_release(rho=0.1, delta=1e-6, neighbours="add-remove", mechanism="noise", proof=name)
        assert Guarantee.from_dict({**old.to_dict(), "proof": path}) == old, path


def test_a_guarantee_stores_the_id_and_tells_the_file():
    told = Guarantee.certified_release(
        rho=0.1, delta=1e-6, neighbours="add-remove", mechanism="noise", proof="mechanisms/gaussian.proof.md"
    )
    assert told.to_dict()["proof"] == "gaussian-noise"
    assert "mechanisms/discrete_gaussian.proof.md" in told.explain()


def test_a_certified_name_is_known_to_the_registry():
    """Every proof that the package's code names is one of these."""
    import ast

    named = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Assign) and any(getattr(t, "id", "").endswith("PROOF") for t in node.targets):
                named |= {c.value for c in ast.walk(node.value) if isinstance(c, ast.Constant)}
            if isinstance(node, ast.keyword) and node.arg == "proof" and isinstance(node.value, ast.Constant):
                named.add(node.value.value)
    assert len(named) > 10
    assert named - {""} <= set(PROOFS)
