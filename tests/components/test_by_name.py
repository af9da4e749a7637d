"""Components given by name: the same objects as on the command line, and a sentence for anything else."""

import numpy as np
import pymanopt.optimizers
import pytest
from pymanopt.manifolds import Oblique, Stiefel
from typer.testing import CliRunner

import manifold_dl as mdl
from manifold_dl import plugins
from manifold_dl.cli import app
from manifold_dl.images import denoise
from manifold_dl.optimizers.by_name import optimizer as optimizer_by_name
from manifold_dl.regularizers import Coherence

Y = mdl.datasets.synthetic(8, 12, 100, sparsity=2, rng=0).signals


def learned(**options):
    return mdl.learn_dictionary(Y, 12, max_iter=3, rng=0, **{"coder": mdl.OMP(sparsity=2), **options})


@pytest.mark.parametrize(
    ("name", "update"),
    [("ksvd", mdl.KSVD()), ("MOD", mdl.MOD()), ("SimCO", mdl.SimCO())],
)
def test_an_update_by_name_is_the_update(name, update):
    by_name, by_object = learned(update=name), learned(update=update)
    np.testing.assert_array_equal(by_name.dictionary, by_object.dictionary)
    np.testing.assert_array_equal(by_name.codes.toarray(), by_object.codes.toarray())


def test_a_coder_by_name_is_the_coder():
    update = mdl.SimCO(mu=0.1)  # FOCUSS finds supports of m atoms, which without a ridge teach nothing
    named, plain = learned(coder="focuss", update=update), learned(coder=mdl.FOCUSS(), update=update)
    np.testing.assert_array_equal(named.dictionary, plain.dictionary)


def test_components_of_simco_by_name_are_the_components():
    rule = mdl.SimCO("lbfgs", manifold="zero-mean", schedule="one-at-a-time", regularizers=["coherence:0.5"])
    assert isinstance(rule.optimizer, mdl.LBFGS)
    assert rule.manifold is mdl.manifolds.ZeroMean
    assert rule.schedule == mdl.schedules.OneAtATime()
    assert rule.regularizers == (Coherence(0.5),)
    assert mdl.SimCO(manifold="stiefel").manifold is Stiefel
    assert mdl.SimCO(manifold="Oblique").manifold is Oblique
    assert mdl.KSVD(schedule="one_at_a_time") == mdl.KSVD()


@pytest.mark.parametrize("name", plugins.available("optimizers"))
def test_every_optimizer_can_be_made_by_name(name):
    assert isinstance(optimizer_by_name(name), plugins.get("optimizers", name))


@pytest.mark.parametrize("name", ["cg", None])
@pytest.mark.parametrize("searcher", plugins.available("line_searchers"))
def test_an_optimizer_takes_a_line_searcher_by_name(name, searcher, monkeypatch):
    used = []
    searcher = plugins.get("line_searchers", searcher)
    search = searcher.search
    monkeypatch.setattr(searcher, "search", lambda self, *args: used.append(self) or search(self, *args))
    optimizer = optimizer_by_name(name, line_searcher=searcher.__name__)
    assert isinstance(optimizer, pymanopt.optimizers.ConjugateGradient)
    learned(update=mdl.SimCO(optimizer))
    assert used


def test_the_estimator_takes_names_and_leaves_its_parameters_alone():
    rows = np.ascontiguousarray(Y.T)
    named = mdl.ManifoldDictionaryLearning(12, coder="iht", update="ksvd", max_iter=3, random_state=0)
    # A tenth of 8 features, and at least one atom.
    plain = mdl.ManifoldDictionaryLearning(
        12, coder=mdl.IHT(sparsity=1), update=mdl.KSVD(), max_iter=3, random_state=0
    )
    np.testing.assert_array_equal(named.fit_transform(rows), plain.fit_transform(rows))
    np.testing.assert_array_equal(named.transform(rows), plain.transform(rows))
    np.testing.assert_array_equal(named.partial_fit(rows).components_, plain.partial_fit(rows).components_)
    assert (named.coder, named.update) == ("iht", "ksvd")


def test_coder_by_name_stops_denoising_at_the_noise():
    picture = np.random.default_rng(0).normal(size=(16, 16))
    options = {"patch_size": 4, "n_atoms": 16, "max_iter": 2, "rng": 0, "update": "ksvd"}
    coders = "forward-selection", None
    named, default = (denoise(picture, 0.5, coder=coder, **options).image for coder in coders)
    np.testing.assert_array_equal(named, default)


REFUSED = [
    (lambda: learned(coder="omp"), "coder='omp': OMP needs a reason to stop: give sparsity"),
    (
        lambda: learned(coder="iht"),
        "coder='iht': IHT needs sparsity. In Python, pass an object: IHT(sparsity=...).",
    ),
    (lambda: learned(coder="lasso"), "coder='lasso': Lasso needs alpha"),
    (lambda: learned(coder="opm"), "coder='opm': There is no 'opm' among the coders. Did you mean OMP?"),
    (lambda: learned(coder=""), "coder='': There is no '' among the coders."),
    (lambda: learned(update="k-svs"), "Did you mean KSVD"),
    (lambda: mdl.SimCO("newton"), "optimizer='newton': There is no 'newton' among the optimizers."),
    (lambda: mdl.SimCO(manifold="columns"), "Columns needs a manifold for one atom: Columns(factory)"),
    (lambda: mdl.SimCO(manifold="subspace"), "Subspace needs a basis"),
    (lambda: mdl.SimCO(manifold="spheres-within"), "SpheresWithin needs to be inherited"),
    (lambda: mdl.SimCO(schedule="blocks"), "schedule='blocks': Blocks needs size"),
    (lambda: mdl.SimCO(regularizers=["coherence"]), "give it as NAME:WEIGHT"),
    (lambda: mdl.SimCO(regularizers=["tether:1"]), "Tether needs reference"),
    (lambda: mdl.SimCO(regularizers=["sum:1"]), "Sum needs regularizers: one + another"),
    (lambda: mdl.SimCO(regularizers=["coherence:-1"]), "weight=-1"),
    (lambda: mdl.ManifoldDictionaryLearning(12, coder="lasso").fit(Y.T), "Lasso needs alpha"),
    (lambda: optimizer_by_name("golden", line_searcher="golden-section"), "takes no line searcher"),
    (lambda: optimizer_by_name("cg", line_searcher="silver"), "line_searcher='silver': There is no 'silver'"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_insufficient_names_are_refused_with_a_sentence(call, words):
    with pytest.raises(ValueError) as error:
        call()
    assert words in str(error.value)
    assert str(error.value).endswith((".", "?"))


@pytest.mark.parametrize(
    "wrong", [b"omp", 5, mdl.OMP, ["omp"], {"omp": 3}, object()], ids=lambda part: type(part).__name__
)
def test_what_is_neither_name_nor_component_is_refused_with_a_sentence(wrong):
    with pytest.raises(TypeError, match=r"coder=.*pass an object with a method encode"):
        learned(coder=wrong)
    with pytest.raises(TypeError, match=r"update: .*pass an object of the kind"):
        learned(update=wrong)
    with pytest.raises(TypeError, match=r"optimizer=.*pass a Pymanopt optimizer"):
        mdl.SimCO(optimizer=wrong)


def test_a_single_string_is_no_list_of_regularizers():
    with pytest.raises(TypeError, match=r"pass a list of them, if only of one: \['coherence:1'\]"):
        mdl.SimCO(regularizers="coherence:1")


# --- The command line ---


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("signals") / "rows.npy"
    np.save(path, Y.T)
    return path


def learn(rows, *options):
    out = rows.with_name("model.npz")
    few = ["--atoms", "8", "--sparsity", "2", "--iterations", "3", "--force", "--quiet", "--out", str(out)]
    done = CliRunner().invoke(app, ["learn", str(rows), *few, *options])
    return done, out


COMMANDS = [
    (
        ["--line-searcher", "golden-section"],
        mdl.SimCO(optimizer_by_name("cg", line_searcher="GoldenSection")),
    ),
    (["--solver", "steepest-descent", "--line-searcher", "back-tracking-line-searcher"], None),
    (["--manifold", "oblique"], mdl.SimCO(manifold=Oblique)),
    (["--manifold", "stiefel"], mdl.SimCO(manifold=Stiefel)),
    (["--solver", "trust-region"], mdl.SimCO("trust-region")),
    (["--regularizer", "coherence:0.5"], mdl.SimCO(regularizers=[Coherence(0.5)])),
    (["--update", "ksvd"], "ksvd"),
]


@pytest.mark.parametrize(
    ("options", "update"), COMMANDS, ids=lambda value: " ".join(value) if value is list else None
)
def test_the_command_line_learns_what_the_function_learns(rows, options, update):
    done, out = learn(rows, *options)
    assert done.exit_code == 0, done.stderr
    if update is None:
        update = mdl.SimCO(
            pymanopt.optimizers.SteepestDescent(
                pymanopt.optimizers.line_search.BackTrackingLineSearcher(), max_iterations=5
            )
        )
    expected = mdl.learn_dictionary(Y, 8, coder=mdl.OMP(sparsity=2), update=update, max_iter=3, rng=0)
    np.testing.assert_array_equal(mdl.load(out).dictionary, expected.dictionary)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--manifold", "columns"], "--manifold columns: Columns needs a manifold for one atom"),
        (["--manifold", "subspace"], "--manifold subspace: Subspace needs a basis"),
        (["--regularizer", "sum:1"], "--regularizer sum: Sum needs regularizers"),
        (["--regularizer", "scaled:1"], "--regularizer scaled: Scaled needs a regularizer"),
        (
            ["--solver", "trust-region", "--line-searcher", "golden-section"],
            "--solver trust-region takes no line",
        ),
        (["--line-searcher", "silver-section"], "Did you mean GoldenSection"),
        (
            ["--update", "mod", "--line-searcher", "golden-section"],
            "--line-searcher belongs to --update simco",
        ),
        (["--coder", "lasso"], "--coder lasso: Lasso needs alpha"),
    ],
)
def test_the_command_line_refuses_with_a_sentence(rows, options, words):
    done, _ = learn(rows, *options)
    assert done.exit_code == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_shell_completes_only_what_can_be_chosen():
    from manifold_dl.cli.choices import names_of

    assert names_of("manifolds")("s") == ["spheres", "stiefel"]
    assert names_of("regularizers")("s") == ["smoothness", "sparse"]
    assert names_of("line_searchers")("g") == ["golden-section"]
    assert names_of("line_searchers")("w") == ["wolfe-search"]
