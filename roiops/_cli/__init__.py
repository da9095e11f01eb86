"""The sub-commands. A new one is a module here and its name below.

A module's docstring is its help text. ``SUMMARY`` is its line in ``roiops --help``, ``configure(parser)``
adds its arguments, ``execute(args)`` does it; a returned number is the exit code.
"""

COMMANDS = ("inspect", "run", "ops", "bench", "doctor", "explain")
