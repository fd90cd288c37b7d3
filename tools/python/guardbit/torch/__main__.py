"""Runs a PyTorch script as a computer with an H200 would: python -m guardbit.torch --machine h200 SCRIPT ARGS..."""

from .command import main

raise SystemExit(main())
