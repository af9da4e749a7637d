"""The studies and their parameters, and tables as files."""

from pathlib import Path

import pytest

from manifold_dl import experiments
from manifold_dl.experiments.tables import as_csv, read_csv


class TestStudies:
    @pytest.mark.parametrize("name", experiments.NAMES)
    def test_find_returns_the_study_of_every_name(self, name):
        study = experiments.find(name)
        assert study.name == name
        # Quick parameters change values of the full ones and invent none.
        assert set(study.quick) <= set(study.full)
        assert study.parts(study.parameters(quick=True))
        assert len(study.parts(study.parameters(quick=True))) <= len(study.parts(study.parameters()))

    def test_unknown_names_are_refused(self):
        with pytest.raises(ValueError, match=r"no experiment 'fig9'.*fig2a"):
            experiments.find("fig9")

    def test_trials_can_be_set_only_where_draws_are_averaged(self):
        assert experiments.find("fig3").parameters(trials=7)["trials"] == 7
        with pytest.raises(ValueError, match="no trials to set"):
            experiments.find("theorem1").parameters(trials=7)

    def test_table_is_read_back_from_its_file(self, tmp_path):
        rows = [{"method": "K-SVD", "n": 60, "error": 1e-30}, {"method": "MOD, again", "n": 8, "error": 0.25}]
        (tmp_path / "t.csv").write_text(as_csv(rows), encoding="utf-8")
        table = read_csv(tmp_path / "t.csv")
        assert table["method"].tolist() == ["K-SVD", "MOD, again"]
        assert table["n"].tolist() == [60, 8]
        assert table["error"].tolist() == [1e-30, 0.25]

    def test_a_damaged_table_is_refused(self, tmp_path):
        (tmp_path / "t.csv").write_text("a,b\n1,2\n3\n", encoding="utf-8")
        with pytest.raises(ValueError, match="2 entries"):
            read_csv(tmp_path / "t.csv")


def test_documentation_page_agrees_with_the_tables(monkeypatch):
    docs = Path(__file__).parents[2] / "docs"
    monkeypatch.syspath_prepend(str(docs))
    import reproduction_table

    page = (docs / "reproduction.md").read_text(encoding="utf-8")
    assert page == reproduction_table.with_table(page), "run python docs/reproduction_table.py"
