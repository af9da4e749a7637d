"""What a dictionary was learned with: in results, in files, and on the command line."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.sparse
from typer.testing import CliRunner

import manifold_dl as mdl
from manifold_dl.cli import app
from manifold_dl.components.settings import describe, is_text, restore
from manifold_dl.learning import archive
from manifold_dl.learning.replacement import ReplaceAtoms

Y = mdl.datasets.synthetic(8, 12, 100, sparsity=2, snr_db=20, rng=0).signals


@dataclass(frozen=True)
class Strangers:
    """A coder that no plug-in names."""

    sparsity: int = 2

    def encode(self, signals, dictionary):
        return mdl.OMP(sparsity=self.sparsity).encode(signals, dictionary)


def omp(**parameters):
    return {"component": "coders.OMP", "parameters": parameters}


# --- Results and files ---


@pytest.fixture(scope="module")
def result():
    return mdl.learn_dictionary(
        Y, 12, coder=mdl.ForwardSelection(sparsity=2), update=mdl.SimCO("trust-region"), max_iter=4, rng=7
    )


def test_result_records_the_settings_of_its_run(result):
    assert result.component("coder") == mdl.ForwardSelection(sparsity=2)
    assert result.settings["seed"] == 7
    assert result.settings["max_iter"] == 4
    assert result.settings["versions"]["numpy"] == np.__version__
    assert set(result.settings["versions"]) == {"manifold_dl", "numpy", "pymanopt"}
    assert restore(result.settings["replace"]) == ReplaceAtoms()
    repeated = mdl.learn_dictionary(
        Y, result.settings["n_atoms"], coder=result.component("coder"), update=result.component("update"),
        max_iter=result.settings["max_iter"], rng=result.settings["seed"],
    )  # fmt: skip
    np.testing.assert_array_equal(repeated.dictionary, result.dictionary)


def test_partial_result_records_the_settings_of_its_run():
    def fail(step):
        raise ZeroDivisionError

    with pytest.raises(mdl.ComponentError) as error:
        mdl.learn_dictionary(Y, 12, coder=mdl.OMP(sparsity=2), max_iter=2, rng=0, callbacks=[fail])
    assert error.value.partial.component("coder") == mdl.OMP(sparsity=2)


def test_a_run_without_a_seed_can_be_repeated_from_the_one_it_drew():
    options = {"coder": mdl.OMP(sparsity=2), "max_iter": 2}
    first = mdl.learn_dictionary(Y, 12, **options)
    second = mdl.learn_dictionary(Y, 12, rng=first.settings["seed"], **options)
    np.testing.assert_array_equal(first.dictionary, second.dictionary)
    theirs = mdl.learn_dictionary(Y, 12, rng=np.random.default_rng(0), **options)
    assert is_text(theirs.settings["seed"])


def test_files_keep_the_settings(result, tmp_path):
    mdl.save(result, tmp_path / "model.npz")
    loaded = mdl.load(tmp_path / "model.npz")
    assert loaded.settings == result.settings
    assert loaded.component("coder") == mdl.ForwardSelection(sparsity=2)
    assert describe(loaded.component("update")) == describe(mdl.SimCO("trust-region"))


def rewrite(result, path, **meta):
    """The file as `save` writes it, with another header."""
    mdl.save(result, path)
    old, arrays = archive.read(path, "result")
    header = {key: value for key, value in old.items() if key not in ("format", "version", "kind", *meta)}
    archive.write(path, "result", header | {k: v for k, v in meta.items() if v is not None}, arrays)


def test_old_files_without_settings_still_load(result, tmp_path):
    rewrite(result, tmp_path / "model.npz", settings=None, explained=None)
    loaded = mdl.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.dictionary, result.dictionary)
    assert loaded.settings == {}
    assert np.isnan(loaded.explained)
    with pytest.raises(ValueError, match="it is not stored with which coder"):
        loaded.component("coder")


def test_settings_that_are_no_mapping_are_damage(result, tmp_path):
    rewrite(result, tmp_path / "model.npz", settings=[1, 2])
    with pytest.raises(ValueError, match=r"model\.npz is damaged"):
        mdl.load(tmp_path / "model.npz")


# --- The command line ---


def invoke(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def rows(tmp_path):
    np.save(tmp_path / "rows.npy", Y.T)
    return tmp_path / "rows.npy"


def encode(rows, *options):
    out = rows.with_name("codes.npz")
    done = invoke("encode", rows.with_name("model.npz"), rows, "--out", out, "--force", *options)
    codes = scipy.sparse.load_npz(out).toarray().T if done.exit_code == 0 else None
    return done, codes


def test_encode_uses_the_stored_coder(result, rows):
    mdl.save(result, rows.with_name("model.npz"))
    done, codes = encode(rows)
    assert done.exit_code == 0, done.stderr
    D = result.dictionary
    np.testing.assert_array_equal(codes, mdl.ForwardSelection(sparsity=2).encode(Y, D).toarray())
    assert "ForwardSelection(sparsity=2" in done.stdout
    by_omp = mdl.OMP(sparsity=2).encode(Y, D).toarray()
    assert (codes != by_omp).any()
    np.testing.assert_array_equal(encode(rows, "--coder", "omp")[1], by_omp)
    wider = mdl.ForwardSelection(sparsity=3).encode(Y, D).toarray()
    np.testing.assert_array_equal(encode(rows, "--sparsity", "3")[1], wider)


def test_encode_requires_a_coder_that_cannot_be_restored(result, rows):
    model = rows.with_name("model.npz")
    for settings, words in [
        ({}, "does not say which coder"),
        ({"coder": describe(Strangers())}, "Strangers(sparsity=2): name one with --coder"),
        ({"coder": omp(sparse=2)}, "has no parameter 'sparse'"),
        ({"coder": describe(mdl.KSVD())}, "is none of the coders"),
    ]:
        mdl.save(replace(result, settings=settings), model)
        done, _ = encode(rows)
        assert done.exit_code == 2
        assert words in done.stderr
        assert encode(rows, "--coder", "omp")[0].exit_code == 0
    mdl.save(replace(result, settings={"coder": describe(mdl.BasisPursuit())}), model)
    assert "has no such parameter" in encode(rows, "--sparsity", "3")[0].stderr


def test_unregistered_coder_is_stored_as_text(tmp_path):
    learned = mdl.learn_dictionary(Y, 12, coder=Strangers(), max_iter=2, rng=0)
    mdl.save(learned, tmp_path / "model.npz")
    assert is_text(mdl.load(tmp_path / "model.npz").settings["coder"])
    # The update has a name, and comes back.
    assert mdl.load(tmp_path / "model.npz").component("update") == mdl.SimCO()


def test_info_prints_what_a_model_was_learned_with(result, tmp_path):
    mdl.save(result, tmp_path / "model.npz")
    text = " ".join(invoke("info", tmp_path / "model.npz").stdout.split())
    for words in [
        "ForwardSelection(sparsity=2, tol=None)", "TrustRegions(", "kappa=0.3", "seed 7", "atoms 12",
        f"numpy {np.__version__}", "explained", "max_iter 4",
    ]:  # fmt: skip
        assert words in text
    facts = json.loads(invoke("info", tmp_path / "model.npz", "--json").stdout)
    assert facts["settings"] == result.settings
    # The definition, in NumPy.
    error = np.sum((Y - result.dictionary @ result.codes.toarray()) ** 2)
    assert facts["explained"] == pytest.approx(1 - error / np.sum(Y**2), abs=1e-12)


def test_info_prints_no_control_characters_of_a_file(result, tmp_path):
    bad = {"text": "\x1b[2J\x07 [red]"}
    mdl.save(
        replace(result, settings={"coder": bad, "\x1b[1m": 1, "versions": {"\x1b": 2}}), tmp_path / "m.npz"
    )
    text = invoke("info", tmp_path / "m.npz").stdout
    assert "\x1b" not in text
    assert "[red]" in text
