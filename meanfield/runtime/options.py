"""One table of typed options: from it come ``--help``, the flags and the keys of a TOML file."""

import argparse
import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite
from types import SimpleNamespace


@dataclass(frozen=True)
class Check:
    """What a value has to satisfy, and how to say so."""

    holds: Callable
    expected: str


positive = Check(lambda value: value > 0, "> 0")
not_negative = Check(lambda value: value >= 0, ">= 0")


def at_least(least):
    """Check that a value is no smaller than `least`."""
    return Check(lambda value: value >= least, f">= {least}")


@dataclass(frozen=True)
class Option:
    """One option of a program.

    Attributes
    ----------
    name : str
        Its key in a file; its flag is the same with dashes.
    kind : type or str
        float, int, str, bool; "numbers", "integers" or "matrix" for lists, on the command
        line in JSON.
    default
        Of that kind, or None.
    help : str
    choices : tuple, optional
    check : Check, optional
        Applied to the value, or to every entry of a list.
    group : str
        Title of its section in ``--help`` and name of its table in a file.
    """

    name: str
    kind: type | str
    default: object
    help: str
    choices: tuple | None = None
    check: Check | None = None
    group: str = "run"

    @property
    def flag(self):
        """--its-name."""
        return "--" + self.name.replace("_", "-")


def parse(options, description, argv=None):
    """Values of all options: defaults, overridden by ``--config FILE``, overridden by flags.

    Parameters
    ----------
    options : sequence of Option
    description : str
        Shown by ``--help``.
    argv : sequence of str, optional
        By default the program's own arguments.

    Returns
    -------
    SimpleNamespace

    Raises
    ------
    ValueError
        For an unknown flag or key (naming the nearest known one), or a value of the wrong
        kind or range, naming key, value and what was expected.
    OSError
        When the file cannot be read.

    Examples
    --------
    >>> table = [Option("beta", float, 1.0, "inverse temperature", check=positive)]
    >>> parse(table, "", ["--beta", "5"]).beta
    5.0
    >>> parse(table, "", ["--bet", "5"])
    Traceback (most recent call last):
        ...
    ValueError: --bet: unknown option; did you mean --beta?
    """
    parser = _parser(options, description)
    given, unknown = parser.parse_known_args(argv)
    if unknown:
        raise ValueError(_unknown(unknown[0], [option.flag for option in options], "option"))
    given = vars(given)
    values = {option.name: option.default for option in options}
    config = given.pop("config", None)
    if config is not None:
        values |= _from_file(config, options)
    by_name = {option.name: option for option in options}
    for name, text in given.items():
        values[name] = _from_text(by_name[name], text)
    return SimpleNamespace(**values)


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise ValueError(message)


def _parser(options, description):
    parser = _Parser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("--config", metavar="FILE.toml", help="read options from a TOML file")
    groups = {}
    for option in options:
        if option.group not in groups:
            groups[option.group] = parser.add_argument_group(option.group)
        text = option.help.replace("%", "%%")
        if option.choices:
            text += f"; one of {', '.join(map(str, option.choices))}"
        if option.check:
            text += f"; {option.check.expected}"
        if option.default is not None:
            text += f" (default {_shown(option.default)})"
        if option.kind is bool:
            groups[option.group].add_argument(
                option.flag, dest=option.name, action=argparse.BooleanOptionalAction, help=text
            )
        else:
            metavar = option.kind.upper() if isinstance(option.kind, str) else (
                option.kind.__name__.upper()
            )
            groups[option.group].add_argument(
                option.flag, dest=option.name, metavar=metavar, help=text
            )
    return parser


def _from_file(path, options):
    with open(path, "rb") as file:
        try:
            content = tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise ValueError(f"{path} is not valid TOML: {problem}") from problem
    known = {option.name: option for option in options}
    tables = {option.group for option in options}
    values = {}
    for key, value in content.items():
        entries = value.items() if key in tables and isinstance(value, dict) else [(key, value)]
        for name, entry in entries:
            if name not in known:
                raise ValueError(f"{path}: {_unknown(name, [*known, *tables], 'key')}")
            if name in values:
                raise ValueError(f"{path}: {name} is given twice; expected once")
            values[name] = _checked(known[name], entry)
    return values


def _from_text(option, text):
    if option.kind in (str, bool):
        return _checked(option, text)
    try:
        # JSON knows numbers and lists, and nothing that could run.
        value = json.loads(text)
    except json.JSONDecodeError:
        value = text
    return _checked(option, value)


def _checked(option, value):
    """`value` as the option's kind, or a ValueError."""
    expected = {
        float: "a finite number",
        int: "an integer",
        str: "text",
        bool: "true or false",
        "numbers": "a list of numbers such as [0.5, -1]",
        "integers": "a list of integers such as [2, 3]",
        "matrix": "a list of rows of equal length such as [[1, 0], [0, 1]]",
    }[option.kind]
    fits, converted = _convert(option.kind, value)
    entries = converted if option.kind in ("numbers", "integers") else [converted]
    if fits and option.choices:
        fits = all(entry in option.choices for entry in entries)
        expected = f"one of {', '.join(map(str, option.choices))}"
    if option.check:
        fits = fits and all(option.check.holds(entry) for entry in entries)
        expected += f" {option.check.expected}"
    if not fits:
        raise ValueError(f"{option.name}={value!r}: expected {expected}")
    return converted


def _convert(kind, value):
    def is_number(entry):
        return (
            isinstance(entry, int | float) and not isinstance(entry, bool) and isfinite(entry)
        )

    def is_integer(entry):
        return isinstance(entry, int) and not isinstance(entry, bool)

    if kind is float:
        return is_number(value), float(value) if is_number(value) else value
    if kind is int:
        return is_integer(value), value
    if kind in (str, bool):
        return isinstance(value, kind), value
    if not isinstance(value, list):
        return False, value
    if kind == "numbers":
        return all(map(is_number, value)), value
    if kind == "integers":
        return all(map(is_integer, value)), value
    rows = all(isinstance(row, list) and all(map(is_number, row)) for row in value)
    return rows and len({len(row) for row in value}) == 1, value


def _unknown(name, known, what):
    nearest = get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f"did you mean {nearest[0]}?" if nearest else "--help lists them all"
    return f"{name}: unknown {what}; {hint}"


def _shown(value):
    return json.dumps(value) if isinstance(value, bool | list) else value
