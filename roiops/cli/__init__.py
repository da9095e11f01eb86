"""The ``roiops`` command. A sub-command is one module here, named in ``COMMANDS``.

A module's docstring is its help text. ``SUMMARY`` is its line in ``roiops --help``, ``configure(parser)``
adds its arguments, ``execute(args)`` does it; a returned number is the exit code.
"""

import argparse
import atexit
import gc
import importlib
import os
import re
import sys
import traceback
import warnings

from .._version import __version__
from ..errors import MXNetError
from ..processors import number_asked
from .blocks import import_module

COMMANDS = ("inspect", "run", "convert", "ops", "bench", "doctor", "explain", "warmup")

_DESCRIPTION = """\
Look into, run and time archived MXNet models and the operators they are made of, without MXNet.

A first look at a model nobody remembers:
  roiops inspect model-symbol.json --params model-0000.params --shape data=1,3,600,800
  roiops run model-symbol.json model-0000.params street.jpg --draw boxes.png
"""

_EPILOG = """\
`roiops COMMAND --help` explains one command, with examples.
Exit codes: 0 done, 1 it could not be done (the reason is on standard error), 2 wrong usage, 130 interrupted.
ROIOPS_TRACEBACK=1, or --traceback, shows where in the program an error arose.
"""


class _Parser(argparse.ArgumentParser):
    """Takes options before, among and after names, also where a name may be left out."""

    _mixing = False

    def parse_known_args(self, args=None, namespace=None):
        if self._mixing or self._subparsers is not None:
            return super().parse_known_args(args, namespace)
        self._mixing = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._mixing = False

    def error(self, message):
        """End with one line: what is wrong is not to be looked for below twenty lines of options."""
        self.exit(2, f"{self.prog}: error: {message} (usage: {self.prog} --help)\n")


def make_parser(commands=COMMANDS) -> argparse.ArgumentParser:
    """The parser of a command line that may name these commands. Their modules take time to load."""
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--traceback", action="store_true", help="show the Python traceback of an error")
    formatter = argparse.RawDescriptionHelpFormatter  # keeps the examples' lines
    parser = _Parser("roiops", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=formatter)
    parser.add_argument("--version", action="version", version=f"roiops {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, title="commands")
    for name in commands:
        module = importlib.import_module(f"{__package__}.{name}")
        sub = subparsers.add_parser(
            name,
            help=module.SUMMARY,
            description=module.__doc__,
            parents=[shared],
            formatter_class=formatter,
        )
        module.configure(sub)
        sub.set_defaults(execute=module.execute, parser=sub)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    _collect_garbage_rarely()
    argv = sys.argv[1:] if argv is None else argv
    parser = make_parser([word for word in argv[:1] if word in COMMANDS] or COMMANDS)
    if not argv:
        parser.print_help(sys.stderr)
        return 2
    args = _parsed(parser, argv)
    if sys.stdout and sys.stdout.errors == "strict":  # no name of a picture ends a run
        sys.stdout.reconfigure(errors="backslashreplace")
    show = args.traceback or os.environ.get("ROIOPS_TRACEBACK", "0") not in ("", "0")
    usual, warnings.formatwarning = warnings.formatwarning, _warning_line
    try:
        number_asked("NUMBA_NUM_THREADS")  # before numba itself refuses it, without a name
        for name in getattr(args, "imports", ()):
            import_module(name, f"--import {name}")
        return args.execute(args) or 0
    except KeyboardInterrupt:
        print("roiops: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (MXNetError, OSError, MemoryError) as error:
        if show:
            traceback.print_exc()
        print(f"roiops {args.command}: error: {_reason(error)}", file=sys.stderr)
        return 1
    except Exception as error:  # a bug of ours: say so, with what a report needs
        if show:
            traceback.print_exc()
        print(
            f"roiops {args.command}: internal error: {type(error).__name__}: {error}\n"
            "Please report it with the output of `roiops doctor` and of this command with --traceback.",
            file=sys.stderr,
        )
        return 1
    finally:
        warnings.formatwarning = usual


def _warning_line(message, *_where) -> str:
    return f"roiops: warning: {message}\n"


def _collect_garbage_rarely() -> None:
    """Garbage collection took a quarter of a short command's time, while modules load and at the end."""
    gc.set_threshold(20_000, *gc.get_threshold()[1:])
    atexit.register(gc.freeze)


def _parsed(parser, argv) -> argparse.Namespace:
    args, more = parser.parse_known_args(_with_negative_numbers(argv))
    if more:
        hint = (
            "; the file of the parameters, or their epoch, goes with --params"
            if args.command in ("inspect", "bench")
            else ""
        )
        args.parser.error(f"unrecognized arguments: {' '.join(more)}{hint}")
    if "" in argv:
        args.parser.error("an argument is empty; is a variable of the shell not set?")
    return args


def _with_negative_numbers(argv) -> list[str]:
    """``--roi -3,2,8,9`` as ``--roi=-3,2,8,9``: argparse takes what begins with a minus for an option."""
    joined: list[str] = []
    for word in map(str, argv):
        if re.match(r"-\d|-\.\d", word) and joined and re.fullmatch(r"--[a-z-]+", joined[-1]):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _reason(error) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__
