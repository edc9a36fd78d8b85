"""A hospital with a studio, for tests: small tables, a configuration, clients, releases as custodians make them."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from asgi_client import Client

from fogline.studio.app import Studio, open_ledger
from fogline.studio.config import StudioConfig, load_config
from fogline.studio.outlook import Outlooks
from fogline.studio.security import Tokens

TOKENS = {"custodian": "custodian-token-of-the-tests", "analyst": "analyst-token-of-the-tests"}
STEPS = (0.05, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0)

CONFIG = """
[studio]
title = "St Anna Hospital"
store = "store"
[ledger]
path = "budget.fogline"
high_water = "marks"
epsilon = 6.0
[dataset.visits]
file = "secret-place/visits.csv"
title = "Hospital visits"
about = "One row per visit."
unit = "patient"
max_contributions = 2
expect_records = 1500
ranges = { age = "age", stay = [0, 60] }
[dataset.lab]
file = "secret-place/lab.csv"
title = "Laboratory"
expect_records = 800
[dataset.other-lab]
file = "secret-place/other.csv"
title = "Other laboratory"
expect_records = 800
"""


def write_tables(folder, seed=0):
    """Tables whose names of folders must not be seen anywhere."""
    rng = np.random.default_rng(seed)
    folder.mkdir(exist_ok=True)
    age = rng.integers(18, 95, 1500)
    stay = rng.gamma(2.0, 1.5 + age / 25)
    lines = [f"{p},{a},{s:.2f},n{p}" for p, a, s in zip(rng.integers(0, 900, 1500), age, stay, strict=True)]
    (folder / "visits.csv").write_text("\n".join(["patient,age,stay,name", *lines, ""]))
    for name, centre in (("lab", 72), ("other", 85)):
        beats = rng.normal(centre, 9, 800).round().astype(int)
        (folder / f"{name}.csv").write_text("\n".join(["heart_rate,ward", *(f"{b},{b % 5}" for b in beats), ""]))


def hospital_config(folder, **changes) -> StudioConfig:
    write_tables(folder / "secret-place")
    (folder / "studio.toml").write_text(CONFIG)
    return replace(load_config(folder / "studio.toml"), time_steps=STEPS, **changes)


def open_studio(config: StudioConfig, anchors=(1.0,)) -> Studio:
    tokens = Tokens(TOKENS["custodian"], TOKENS["analyst"])
    return Studio(config, open_ledger(config), tokens, outlooks=Outlooks(anchors))


def enter(app, role: str) -> Client:
    client = Client(app)
    assert client.post("/enter", {"token": TOKENS[role]}).status == 303
    return client


def form_key(text: str) -> str:
    return re.search(r'name="key" value="([^"]+)"', text)[1]


def released(studio: Studio, client: Client, dataset: str, query: str) -> str:
    """Id of a release, made as a custodian makes it."""
    shown = client.get(f"/data/{dataset}/review?{query}")
    begun = client.post(f"/data/{dataset}/release", {"key": form_key(shown.text)})
    studio.releasing.finish()
    work = begun.header("location")
    while not client.get(f"{work}/state").json["told"]:
        pass
    place = client.get(work).header("location")
    assert place.startswith("/releases/"), client.get(work).text
    return place.removeprefix("/releases/")
