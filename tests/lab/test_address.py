import pytest

from manifold_dl.lab.address import from_query, to_query
from manifold_dl.lab.settings import Settings

CHANGED = Settings(
    data="picture",
    m=3,
    patch=5,
    d=7,
    n=110,
    sparsity=2,
    noise=12.5,
    seed=3,
    start="typed",
    start_seed=4,
    typed="1 0 0; 0 1 0",
    problem="lasso_problem",
    alpha="0.2, 0.1",
    manifold="Lines",
    optimizer="LBFGS",
    line_searcher="WolfeSearch",
    schedule="Blocks",
    size=3,
    ridge="in turn",
    mu="0.1, 0",
    turns=7,
    regularizer="Coherence",
    weight=0.5,
    iterations=9,
    sweeps=2,
)


def test_every_setting_is_read_back_from_the_address():
    default, changed = vars(Settings()), vars(CHANGED)
    assert all(default[name] != changed[name] for name in default), "the example changes every setting"
    assert from_query("http://127.0.0.1:2718/?" + to_query(CHANGED)) == (CHANGED, {})
    assert to_query(Settings()) == ""


@pytest.mark.parametrize(
    ("query", "control"),
    [
        ("m=1", "m"),
        ("m=many", "m"),
        ("noise=nan", "noise"),
        ("iterations=1e400", "iterations"),
        ("n=10.5", "n"),
        ("data=network", "data"),
        ("regularizer=own", "regularizer"),
        ("typed=" + "1 " * 2000, "typed"),
    ],
)
def test_what_an_address_must_not_bring_keeps_its_default_and_is_reported(query, control):
    settings, messages = from_query(query)
    assert settings == Settings()
    assert list(messages) == [control] and messages[control].endswith(".")


def test_an_address_never_brings_code():
    query = to_query(Settings(regularizer="own"))
    assert query == ""
    settings, _ = from_query("text=def+R(D)&code=import+os&own_text=x&m=4")
    assert settings == Settings(m=4)
