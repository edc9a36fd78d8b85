"""What an administrator may write, and what is refused when the studio starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hospital import hospital_config

from fogline.cli.studio import studio_config
from fogline.ledger import Ledger
from fogline.studio.app import links, open_ledger
from fogline.studio.config import ConfigError, Dataset, StudioConfig, folder_config, load_config

pytestmark = pytest.mark.quick


def test_a_configuration_is_read_with_paths_from_its_folder(tmp_path):
    config = hospital_config(tmp_path)
    visits = config.dataset("visits")
    assert visits.source == str(tmp_path / "secret-place/visits.csv")
    assert (visits.unit, visits.max_contributions, visits.kind) == ("patient", 2, "text file")
    assert config.ledger == tmp_path / "budget.fogline"
    assert config.cap == (6.0, 0.0)
    assert config.dataset("nobody") is None


def test_a_place_is_not_in_the_text_of_a_data_set():
    shown = repr(Dataset("a", "/srv/secret.csv", "A", account="a", query="SELECT secret"))
    assert "secret" not in shown


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "there is no data set"),
        ("[dataset.Visits]\nfile = 'a.csv'", "is no id"),
        ("[dataset.a]\ntitle = 'A'", "needs a file"),
        ("[dataset.a]\nfile = 'a.csv'\nunits = 'patient'", "did you mean 'unit'"),
        ("[dataset.a]\nfile = 'a.csv'\nranges = { age = 'agee' }", "no public range named 'agee'"),
        ("[studio]\nport = 1\nprot = 2\n[dataset.a]\nfile = 'a.csv'", "unknown key 'prot'"),
        ("dataset = 3", "write data sets as"),
        ("[dataset.a", "is no TOML"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, text, words):
    (tmp_path / "studio.toml").write_text(text)
    with pytest.raises(ConfigError, match=words):
        load_config(tmp_path / "studio.toml")


def test_a_folder_gives_a_data_set_per_table_and_nothing_else(tmp_path):
    for name in ("Visits 2025.csv", "visits_2025.csv.gz", "lab.parquet", "notes.docx", ".hidden.csv", "_draft.csv"):
        (tmp_path / name).write_bytes(b"a,b\n")
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "far.csv").write_text("a\n")
    config = folder_config(tmp_path, store=tmp_path / "store")
    assert [dataset.id for dataset in config.datasets] == ["visits-2025", "lab", "visits-2025-2"]
    assert config.datasets[1].kind == "Parquet"
    with pytest.raises(ConfigError, match="there is no folder"):
        folder_config(tmp_path / "nowhere", store=tmp_path)


def test_a_link_that_leads_out_of_the_folder_is_no_data_set(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "secret.txt").write_text("password of the director\n")
    (tmp_path / "data" / "2025.csv").write_text("age\n1\n")
    (tmp_path / "data" / "current.csv").symlink_to("2025.csv")
    (tmp_path / "data" / "other.csv").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "data" / "loop.csv").symlink_to(tmp_path / "data" / "loop.csv")
    assert [one.id for one in folder_config(tmp_path / "data", store=tmp_path).datasets] == ["2025", "current"]


def test_two_data_sets_have_two_ids():
    one = Dataset("a", "a.csv", "A", account="a")
    with pytest.raises(ConfigError, match="the same id"):
        StudioConfig((one, one), Path("store"), Path("ledger"))


def test_hosts_and_origins_name_this_machine_and_what_was_allowed():
    one = Dataset("a", "a.csv", "A", account="a")
    plain = StudioConfig((one,), Path("s"), Path("l"), port=9000)
    assert plain.allowed_hosts == {"127.0.0.1:9000", "localhost:9000", "[::1]:9000"}
    behind = StudioConfig((one,), Path("s"), Path("l"), hosts=("Studio.example",), https=True)
    assert "https://studio.example" in behind.allowed_origins
    assert not any(origin.startswith("http://") for origin in behind.allowed_origins)
    assert links(behind, {"custodian": "secret"}) == {"custodian": "https://Studio.example/enter#secret"}
    assert links(plain, {"analyst": "t"}) == {"analyst": "http://127.0.0.1:9000/enter#t"}


def test_a_ledger_is_made_only_where_a_budget_is_given(tmp_path):
    config = hospital_config(tmp_path)
    with pytest.raises(ConfigError, match="there is no ledger"):
        open_ledger(hospital_config(tmp_path, cap=None))
    ledger = open_ledger(config)
    assert ledger.datasets == ("visits", "lab", "other-lab")
    assert ledger.unit("visits").max_contributions == 2
    ledger.close()
    again = open_ledger(hospital_config(tmp_path, cap=None))
    assert again.remaining("lab").pure == pytest.approx(6.0)
    again.close()


def test_a_data_set_that_the_ledger_does_not_know_needs_a_budget(tmp_path):
    Ledger.create(
        tmp_path / "budget.fogline", dataset="visits", epsilon=1.0, delta=0.0, high_water=tmp_path / "marks"
    ).close()
    with pytest.raises(ConfigError, match="has no data set 'lab'"):
        open_ledger(hospital_config(tmp_path, cap=None))


def test_options_take_the_place_of_the_file(tmp_path):
    hospital_config(tmp_path)
    config = studio_config(tmp_path / "studio.toml", {"port": 9999, "budget": 2.5, "hosts": ("a:1",)})
    assert (config.port, config.cap, config.hosts) == (9999, (2.5, 0.0), ("a:1",))
    folder = studio_config(tmp_path / "secret-place", {"store": tmp_path / "s"})
    assert (folder.store, folder.ledger) == (tmp_path / "s", tmp_path / "s" / "budget.fogline")
    with pytest.raises(ConfigError, match="--budget"):
        studio_config(tmp_path / "secret-place", {"budget": -1.0})
