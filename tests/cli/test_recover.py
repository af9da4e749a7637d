"""The demonstration of recovery, in small."""

from typer.testing import CliRunner

from manifold_dl.cli import app


def test_recover_prints_its_table():
    done = CliRunner().invoke(app, ["recover", "--signals", "32"])
    assert done.exit_code == 0, done.output
    assert "presets.recover" in done.output
