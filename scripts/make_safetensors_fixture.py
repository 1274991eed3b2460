#!/usr/bin/env python3
"""Makes tests/fixtures/python.safetensors, a file by the reference implementation that safetensors_test.cpp reads.

Needs: pip install numpy safetensors
"""
import pathlib

import numpy
from safetensors.numpy import save_file

tensors = {
    "matrix": numpy.array([[0.5, -1.25, 3.0], [1e-8, 65504.0, -0.0]], dtype=numpy.float32),
    "double": numpy.array([1.0 / 3.0, -2.0], dtype=numpy.float64),
    "scalar": numpy.array(7.5, dtype=numpy.float32),
    "empty": numpy.zeros((0, 4), dtype=numpy.float32),
    "counts": numpy.array([1, 2, 3], dtype=numpy.int64),
    "half": numpy.array([1.0, 2.0], dtype=numpy.float16),
    "caf\u00e9 \"quoted\"": numpy.array([1, 0, 1], dtype=numpy.bool_),
}
target = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "python.safetensors"
target.parent.mkdir(exist_ok=True)
save_file(tensors, target, metadata={"note": "two\nlines"})
