"""What a coder declares of itself, with defaults."""

from manifold_dl.coders import OMP, FixedSupport
from manifold_dl.coders.protocol import CoderProperties, properties_of


def test_properties_that_a_coder_does_not_declare_are_false():
    class Correlations:
        def encode(self, signals, dictionary):
            return dictionary.T @ signals

    assert properties_of(Correlations()) == CoderProperties(False, False, False)
    assert properties_of(OMP(tol=0.5)) == CoderProperties(optimal_on_support=True)
    assert properties_of(FixedSupport([[0]])) == CoderProperties(True, True, True)
