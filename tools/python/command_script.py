#!python
"""The command `guardbit` of an environment: calls it in the package's module."""

import ctypes
import importlib.machinery
import importlib.util
import os
import sys

# Neither the package is imported nor NumPy; nor is the module asked to begin.
package = importlib.util.find_spec("guardbit")
module = importlib.machinery.PathFinder.find_spec("guardbit._core", package.submodule_search_locations) if package else None
if module is None or not module.origin:
    sys.exit("guardbit: the package guardbit is not installed for this Python")
words = [b"guardbit", *map(os.fsencode, sys.argv[1:])]
ctypes.CDLL(module.origin).guardbit_command(len(words), (ctypes.c_char_p * (len(words) + 1))(*words))
