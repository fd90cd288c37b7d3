#!python
"""The command `guardbit` of an environment: starts the program that lies in the package."""

import importlib.util
import os
import sys

package = importlib.util.find_spec("guardbit")  # without importing it, nor NumPy
if package is None or not package.submodule_search_locations:
    sys.exit("guardbit: the package guardbit is not installed for this Python")
os.execv(os.path.join(package.submodule_search_locations[0], "bin", "guardbit"), ["guardbit", *sys.argv[1:]])
