"""Fit diffprivlib's k-means as often as asked, for an audit in another process.

diffprivlib needs an older scikit-learn than fogline runs on, so it lives in an environment of its own:

    python benchmarks/diffprivlib_kmeans.py --install      makes .venv-diffprivlib (once)
    .venv-diffprivlib/bin/python benchmarks/diffprivlib_kmeans.py < request.json

The request holds `data` (several arrays of records, or the name of a .npy file each), `runs`, `epsilon`, `bounds` (low
and high, an array each) and `n_clusters`. The answer has for each array of records and each run what a fitted model
holds besides labels: `centres`, `inertia`, `labels` (how many) and `seconds` for all. Every fit draws fresh noise.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any

ENVIRONMENT = Path(__file__).resolve().parent.parent / ".venv-diffprivlib"
REQUIREMENTS = ("diffprivlib==0.6.6", "scikit-learn==1.7.*")


def install(folder: Path = ENVIRONMENT) -> Path:
    """Make the environment if there is none, and return its interpreter."""
    interpreter = folder / "bin" / "python"
    ready = folder / ".ready"
    if not ready.exists():
        venv.create(folder, with_pip=True, clear=True)
        command = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *REQUIREMENTS]
        subprocess.run(command, check=True, capture_output=True, timeout=600)
        ready.touch()
    return interpreter


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Fit as often as asked."""
    import diffprivlib  # type: ignore[import-not-found,unused-ignore]
    import numpy as np
    import sklearn

    low, high = (np.array(side, dtype=float) for side in request["bounds"])
    start, outputs = time.perf_counter(), []
    for records in request["data"]:
        X = np.load(records).astype(float) if isinstance(records, str) else np.array(records, dtype=float)
        side = []
        for _ in range(request["runs"]):
            model = diffprivlib.models.KMeans(request["n_clusters"], epsilon=request["epsilon"], bounds=(low, high))
            model.fit(X)
            fitted = {"centres": model.cluster_centers_.tolist(), "inertia": float(model.inertia_)}
            side.append({**fitted, "labels": len(model.labels_)})
        outputs.append(side)
    versions = {"diffprivlib": diffprivlib.__version__, "scikit-learn": sklearn.__version__, "numpy": np.__version__}
    return {"outputs": outputs, "versions": versions, "seconds": time.perf_counter() - start}


def main() -> None:
    if "--install" in sys.argv[1:]:
        print(install())
    else:
        json.dump(answer(json.load(sys.stdin)), sys.stdout)


if __name__ == "__main__":
    main()
