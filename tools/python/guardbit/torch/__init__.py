"""PyTorch programs with the bits of a GPU that is not there: `python -m guardbit.torch --machine h200 SCRIPT ARGS...`."""
