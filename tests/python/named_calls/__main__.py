"""python -m named_calls, or this file as a script: recorder.py says how."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # a script's folder would hide modules of Python

from named_calls.recorder import main  # noqa: E402

if __name__ == "__main__":
    main()
