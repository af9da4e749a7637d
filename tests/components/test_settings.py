"""What a dictionary was learned with: as JSON and back, in files, and on the command line."""

import json
from dataclasses import dataclass, replace

import autograd.numpy as anp
import numpy as np
import pytest
import scipy.sparse
from pymanopt.manifolds import Grassmann, Oblique, Stiefel
from pymanopt.optimizers import ConjugateGradient, NelderMead, ParticleSwarm, SteepestDescent, TrustRegions
from pymanopt.optimizers.line_search import AdaptiveLineSearcher, BackTrackingLineSearcher
from typer.testing import CliRunner

import manifold_dl as mdl
from manifold_dl import manifolds, plugins, regularizers, schedules
from manifold_dl.cli import app
from manifold_dl.components.settings import describe, is_text, restore, shown
from manifold_dl.learning import archive
from manifold_dl.learning.replacement import ReplaceAtoms
from manifold_dl.updates.ridge import Sawtooth, TwoStep

Y = mdl.datasets.synthetic(8, 12, 100, sparsity=2, snr_db=20, rng=0).signals


def again(value):
    """Through JSON as a file holds it."""
    return restore(json.loads(json.dumps(describe(value), allow_nan=False)))


COMPARABLE = [
    mdl.OMP(sparsity=3),
    mdl.OMP(tol=0.1),
    mdl.ForwardSelection(sparsity=3, tol=1e-3),
    mdl.Lasso(alpha=0.1, relative=True),
    mdl.BasisPursuit(),
    mdl.MatchingPursuit(sparsity=3),
    mdl.GradientPursuit(sparsity=3),
    mdl.SubspacePursuit(sparsity=3),
    mdl.IHT(sparsity=3),
    mdl.FOCUSS(p=0.7),
    mdl.AnnealedLasso(3, Sawtooth(0.4, 0.1, 3, 5)),
    mdl.KSVD("power", mu=0.1),
    mdl.KSVD(schedule=schedules.OneAtATime("random")),
    mdl.MOD(ridge=0.2),
    mdl.SimCO(),
    mdl.SimCO(mu=[0.1, 0.0], codes="fixed"),
    mdl.SimCO(mu=(0.1, 0.0), manifold=Stiefel, threads=2),
    mdl.SimCO(mu=TwoStep(0.3, 0.5), manifold=Oblique, precondition=False),
    mdl.SimCO(schedule=schedules.Blocks(size=4), regularizers=[regularizers.Coherence(0.1)]),
    mdl.SimCO(regularizers=["sparse:0.1", 2 * regularizers.Coherence(0.1) + regularizers.Sparse(0.2)]),
    schedules.AllAtoms(),
    schedules.Overlapping(size=4, step=2),
    schedules.RandomSubsets(size=4, count=3),
    regularizers.LogBarrierCoherence(0.1, bound=0.9),
    regularizers.Smoothness(0.1, (4, 4)),
    regularizers.Decorrelation(0.1, (0, 0, 1, 1)),
    regularizers.Scaled(0.5, regularizers.Sparse(0.2)),
    mdl.GoldenSection(t4=0.5),
    mdl.WolfeSearch(curvature=0.3, first_step=None),
    TwoStep(),
    Sawtooth(0.4, 0.1, 3, 5),
    ReplaceAtoms(coherence=0.9),
    manifolds.ZeroMean,
    [1, 2.5, None, True, "text", (np.float32(0.1), (1,), ())],
]


@pytest.mark.parametrize("value", COMPARABLE, ids=lambda value: shown(describe(value))[:60])
def test_settings_come_back_equal(value):
    assert again(value) == value
    assert type(again(value)) is type(value)


def test_every_component_of_ours_has_been_tried():
    described = json.dumps([describe(value) for value in [*COMPARABLE, *OPTIMIZERS]])
    left_out = {
        "coders": {"FixedSupport"},  # holds data: see below
        "manifolds": set(plugins.available("manifolds")),  # all of them by name, as ZeroMean
        "regularizers": {"Tether"},  # holds an array, which does not compare: see below
    }
    for kind in plugins.KINDS:
        for name in set(plugins.available(kind)) - left_out.get(kind, set()):
            assert f"{kind}.{name}" in described, name


OPTIMIZERS = [
    SteepestDescent(max_iterations=7),
    SteepestDescent(line_searcher=mdl.GoldenSection(width=1e-2)),
    ConjugateGradient("FletcherReeves", line_searcher=BackTrackingLineSearcher(optimism=3), verbosity=0),
    ConjugateGradient(line_searcher=AdaptiveLineSearcher(initial_step_size=0.1)),
    TrustRegions(kappa=0.3, max_iterations=3, min_gradient_norm=1e-9),
    NelderMead(max_iterations=4, reflection=1.5),
    ParticleSwarm(population_size=5),
    mdl.LBFGS(memory=3, max_iterations=9),
    mdl.LeadingSingularVector(power_steps=2),
]


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda o: type(o).__name__)
def test_optimizers_come_back_with_their_parameters(optimizer):
    restored = again(optimizer)
    assert type(restored) is type(optimizer)
    assert describe(restored) == describe(optimizer)
    # Their attributes are all there is to them; our searchers compare by their fields.
    plain = {k: v for k, v in vars(optimizer).items() if isinstance(v, (int, float, str, type(None)))}
    assert plain == {k: v for k, v in vars(restored).items() if k in plain}


@pytest.mark.parametrize("optimizer", OPTIMIZERS[:5], ids=lambda o: type(o).__name__)
def test_a_restored_rule_learns_the_same_dictionary(optimizer):
    update = mdl.SimCO(optimizer, regularizers=[regularizers.Coherence(0.01)])
    runs = [
        mdl.learn_dictionary(Y, 12, coder=mdl.OMP(sparsity=2), update=rule, max_iter=3, rng=0)
        for rule in (update, again(update))
    ]
    np.testing.assert_array_equal(runs[0].dictionary, runs[1].dictionary)


def test_arrays_come_back_unless_they_are_data():
    tether = regularizers.Tether(0.5, np.random.default_rng(0).normal(size=(8, 12)).astype(np.float32))
    np.testing.assert_array_equal(again(tether).reference, tether.reference)
    assert again(tether).reference.dtype == tether.reference.dtype
    for array in (np.array(3), np.zeros((0, 2)), np.arange(6, dtype=np.uint8).reshape(2, 3), np.eye(2) > 0):
        np.testing.assert_array_equal(again(array), array, strict=True)
    assert is_text(describe(np.zeros((300, 300))))
    assert is_text(describe(np.array([1.0, np.nan])))
    assert is_text(describe(np.array(["a"])))


@dataclass(frozen=True)
class Strangers:
    """A coder that no plug-in names."""

    sparsity: int = 2

    def encode(self, signals, dictionary):
        return mdl.OMP(sparsity=self.sparsity).encode(signals, dictionary)


class Mute:
    def __repr__(self):
        raise RuntimeError

    encode = Strangers.encode
    sparsity = 2


@dataclass(frozen=True)
class Descendant(mdl.OMP):
    """A class of its own, whatever it inherits."""


@pytest.mark.parametrize(
    "value",
    [Strangers(), Mute(), Descendant(sparsity=1), Grassmann, lambda t: 0.1, scipy.sparse.eye_array(3)],
)
def test_what_has_no_name_is_stored_as_text(value):
    description = describe(value)
    assert is_text(json.loads(json.dumps(description)))
    with pytest.raises(ValueError, match="stored as text, from which it cannot be made again"):
        restore(description)


def test_a_part_stored_as_text_makes_the_whole_unrestorable():
    update = mdl.SimCO(mu=lambda t: 0.1, regularizers=[lambda D: anp.sum(D**4)])
    assert "lambda" in shown(describe(update))
    with pytest.raises(ValueError, match="stored as text"):
        again(update)


def omp(**parameters):
    return {"component": "coders.OMP", "parameters": parameters}


def nested(depth):
    value = regularizers.Sparse(0.1)
    description = describe(value)
    for _ in range(depth):
        description = {
            "component": "regularizers.Scaled",
            "parameters": {"factor": 2.0, "regularizer": description},
        }
    return description


HOSTILE = [
    ({"component": "coders.Magic", "parameters": {}}, "There is no 'Magic' among the coders"),
    ({"component": "os.system", "parameters": {"command": "true"}}, "begins with no kind of component"),
    ({"component": "coders.__class__", "parameters": {}}, "There is no '__class__'"),
    ({"component": "builtins.eval", "parameters": {}}, "begins with no kind"),
    ({"component": 5, "parameters": {}}, "describes no setting"),
    ({"component": "coders.OMP"}, "describes no setting"),
    ({"component": "coders.OMP", "parameters": [3]}, "describes no setting"),
    ({**omp(sparsity=3), "extra": 1}, "describes no setting"),
    (omp(sparse=3), "coders.OMP has no parameter 'sparse'; it has sparsity, tol"),
    (omp(sparsity="three"), "coders.OMP cannot be made with the parameters stored"),
    (omp(), "coders.OMP cannot be made with the parameters stored"),
    (omp(sparsity=-3), "coders.OMP cannot be made"),
    ({"component": "optimizers.TrustRegions", "parameters": {"callback": 1}}, "has no parameter 'callback'"),
    ({"named": "coders.Magic"}, "There is no 'Magic'"),
    ({"named": "manifolds"}, "There is no ''"),
    ({"float": "1e3"}, "describes no setting"),
    ({"tuple": 3}, "describes no setting"),
    ({"array": [1, 2], "shape": [3], "dtype": "float64"}, "an array in the settings is damaged"),
    ({"array": [[1], [2, 3]], "shape": [2], "dtype": "float64"}, "an array in the settings is damaged"),
    ({"array": [1], "shape": [1], "dtype": "object"}, "an array in the settings is damaged"),
    ({"array": [1], "shape": ["x"], "dtype": "int8"}, "an array in the settings is damaged"),
    ({"array": [300], "shape": [1], "dtype": "int8"}, "an array in the settings is damaged"),
    ({"array": [1], "shape": [1], "dtype": "no such type"}, "an array in the settings is damaged"),
    ({}, "describes no setting"),
    (nested(100), "more than 20 deep"),
]


@pytest.mark.parametrize(("description", "words"), HOSTILE, ids=[words for _, words in HOSTILE])
def test_hostile_settings_are_refused_with_a_sentence(description, words):
    description = json.loads(json.dumps(description))
    with pytest.raises(ValueError) as error:
        restore(description)
    assert words in str(error.value)
    shown(description)  # may be looked at all the same


@pytest.mark.parametrize(
    "description", [describe(mdl.KSVD()), {"named": "coders.OMP"}, 5, None, [], describe(manifolds.Spheres)]
)
def test_a_coder_has_to_be_a_coder(description):
    with pytest.raises(ValueError, match=r"is none of the coders|is a class of coders"):
        restore(description, "coders")


# --- Results and files ---


@pytest.fixture(scope="module")
def result():
    return mdl.learn_dictionary(
        Y, 12, coder=mdl.ForwardSelection(sparsity=2), update=mdl.SimCO("trust-region"), max_iter=4, rng=7
    )


def test_a_result_knows_what_it_was_learned_with(result):
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


def test_the_partial_result_of_a_failure_knows_it_too():
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


def test_settings_that_are_none_are_damage(result, tmp_path):
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


def test_encode_asks_for_a_coder_that_it_cannot_make(result, rows):
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


def test_learning_with_a_strangers_coder_is_stored_as_text(tmp_path):
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


def test_info_lets_no_file_command_the_terminal(result, tmp_path):
    bad = {"text": "\x1b[2J\x07 [red]"}
    mdl.save(
        replace(result, settings={"coder": bad, "\x1b[1m": 1, "versions": {"\x1b": 2}}), tmp_path / "m.npz"
    )
    text = invoke("info", tmp_path / "m.npz").stdout
    assert "\x1b" not in text
    assert "[red]" in text
