"""``python -m meanfield``: what the package does by itself, without a driver."""

import argparse
import sys

from meanfield import __version__


def main(argv=None):
    """Run a command and return its exit status; a command line that makes no sense ends with 2."""
    parser = argparse.ArgumentParser(prog="python -m meanfield", description=__doc__)
    parser.add_argument("--version", action="version", version=f"meanfield {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser(
        "doctor", help="say what is installed, whether the pieces fit together, and what to do"
    )
    parser.parse_args(argv)

    from meanfield.doctor import examine

    return examine()


if __name__ == "__main__":
    sys.exit(main())
