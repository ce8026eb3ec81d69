import pytest

from meanfield.runtime.options import Option, at_least, parse, positive

TABLE = (
    Option("beta", float, 4.0, "inverse temperature", check=positive, group="model"),
    Option("direction", str, "ascent", "way", choices=("ascent", "descent"), group="model"),
    Option("weights", "matrix", None, "rows", group="model"),
    Option("sizes", "integers", [10, 20], "how many", check=at_least(1)),
    Option("w", "numbers", None, "weights"),
    Option("seed", int, 1, "seed"),
    Option("overwrite", bool, False, "replace 100% of it"),
)


def test_defaults_file_and_flags_in_that_order(tmp_path):
    config = tmp_path / "run.toml"
    config.write_text('seed = 5\nsizes = [3]\n[model]\nbeta = 2\nweights = [[1, 0], [0, 1]]\n')
    values = parse(TABLE, "", ["--config", str(config), "--seed", "9", "--overwrite"])
    assert (values.beta, values.seed, values.sizes, values.overwrite) == (2.0, 9, [3], True)
    assert values.weights == [[1, 0], [0, 1]]
    assert (values.direction, values.w) == ("ascent", None)
    assert isinstance(values.beta, float)


def test_lists_on_the_command_line():
    values = parse(TABLE, "", ["--sizes", "[7, 8]", "--w", "[0.5, -1]", "--no-overwrite"])
    assert (values.sizes, values.w, values.overwrite) == ([7, 8], [0.5, -1], False)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--bet", "1"], r"--bet: unknown option; did you mean --beta\?"),
        (["--beta", "-1"], r"beta=-1: expected a finite number > 0"),
        (["--beta", "zero"], r"beta='zero': expected a finite number > 0"),
        (["--beta", "NaN"], r"beta=nan: expected a finite number > 0"),
        (["--beta", "Infinity"], r"beta=inf: expected a finite number > 0"),
        (["--seed", "1.5"], r"seed=1\.5: expected an integer"),
        (["--seed", "true"], r"seed=True: expected an integer"),
        (["--sizes", "[0]"], r"sizes=\[0\]: expected a list of integers.*>= 1"),
        (["--sizes", "3"], r"sizes=3: expected a list"),
        (["--direction", "up"], r"direction='up': expected one of ascent, descent"),
        (["--weights", "[[1], [1, 2]]"], r"weights=.*rows of equal length"),
        (["--w", "[1, \"a\"]"], r"w=.*list of numbers"),
        (["--seed"], r"seed: expected one argument"),
    ],
)
def test_bad_flags_are_named(argv, message):
    with pytest.raises(ValueError, match=message):
        parse(TABLE, "", argv)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bata = 1", r"bata: unknown key; did you mean beta\?"),
        ("[modell]\nbeta = 1", r"modell: unknown key; did you mean model\?"),
        ("beta = '1'", r"beta='1': expected a finite number"),
        ("beta = 1\n[model]\nbeta = 2", r"beta is given twice"),
        ("beta = ", r"not valid TOML"),
    ],
)
def test_bad_files_are_named(tmp_path, text, message):
    config = tmp_path / "run.toml"
    config.write_text(text)
    with pytest.raises(ValueError, match=message):
        parse(TABLE, "", ["--config", str(config)])


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(OSError, match="nowhere"):
        parse(TABLE, "", ["--config", str(tmp_path / "nowhere.toml")])


def test_help_is_made_from_the_table(capsys):
    with pytest.raises(SystemExit) as ended:
        parse(TABLE, "What it shows.", ["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    for option in TABLE:
        assert option.flag in text
        assert option.help.split()[0] in text
    assert "100% of it" in text
    assert "(default 4.0)" in text
