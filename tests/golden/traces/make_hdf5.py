#!/usr/bin/env python3
"""Writes tests/golden/traces/datasets.h5: python3 make_hdf5.py (needs h5py and NumPy)."""

import os

import h5py
import numpy

values = numpy.arange(-12, 12, dtype=numpy.float32).reshape(4, 6) * numpy.float32(2.0**-26)
with h5py.File(os.path.join(os.path.dirname(__file__), "datasets.h5"), "w", libver="earliest") as file:
    file.attrs["loss_scale"] = 1024.0
    file.attrs["step"] = 5
    file["fc1.grad"] = values
    file.create_dataset("deep/rank_2/fc2.grad", data=values, chunks=(3, 4), compression="gzip", shuffle=True)
    file["big_endian.grad"] = values.astype(">f4")
    file["half.act"] = values.astype(numpy.float16)
    file["raw.bf16"] = (values.view(numpy.uint32) >> 16).astype("<u2").view("V2")
    file["empty.grad"] = numpy.zeros((0, 3), numpy.float32)
    file["scalar.grad"] = numpy.float64(0.25)
    file["integers"] = numpy.arange(5)
    file["words"] = ["left", "out"]
    file["again"] = h5py.SoftLink("/fc1.grad")
    file["elsewhere"] = h5py.ExternalLink("/etc/passwd", "/")

# Announces 4 TiB in a file of some KB.
with h5py.File(os.path.join(os.path.dirname(__file__), "bomb.h5"), "w", libver="earliest") as file:
    file.create_dataset("huge", shape=(1 << 40,), chunks=(1 << 20,), dtype=numpy.float32)

# Its numbers are another file's bytes.
with h5py.File(os.path.join(os.path.dirname(__file__), "external.h5"), "w", libver="earliest") as file:
    file.create_dataset("stolen", shape=(4,), dtype=numpy.float32, external=[("/etc/passwd", 0, 16)])
