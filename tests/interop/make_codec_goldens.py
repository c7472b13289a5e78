#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every code of E2M1, E4M3 and E8M0 as ml_dtypes decodes it, and roundings as ml_dtypes encodes them.

Writes tests/data/core/ml_dtypes_codecs.json; with --check compares it with what is there. Needs numpy and ml_dtypes.
Values are float32 bits, so that NaN and -0 survive JSON.
"""
import json
import pathlib
import sys

import ml_dtypes
import numpy as np

OUT = pathlib.Path(__file__).parent.parent / "data" / "core" / "ml_dtypes_codecs.json"


def bits(x):
    return np.asarray(x, np.float32).view(np.uint32).tolist()


def decoded(dtype, codes):
    return bits(np.array(codes, np.uint8).view(dtype).astype(np.float32))


def roundings(dtype, storage, largest):
    """Midpoints of neighbours, one float either side of each, powers of two and random values, both signs."""
    finite = np.arange(0, 2 ** (8 * np.dtype(storage).itemsize - 1), dtype=np.uint32).astype(storage)
    values = np.unique(finite.view(dtype).astype(np.float32))
    values = values[np.isfinite(values)]
    if len(values) > 300:
        values = values[np.linspace(0, len(values) - 1, 300).astype(int)]
        neighbours = np.concatenate([values, [np.float32(v).astype(dtype).astype(np.float32) for v in values]])
        values = np.unique(neighbours)
    middle = ((values[1:].astype(np.float64) + values[:-1]) / 2).astype(np.float32)
    rng = np.random.default_rng(3)
    rough = np.ldexp(rng.standard_normal(200), rng.integers(-24, 12, 200)).astype(np.float32)
    x = np.concatenate([values, middle, np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(np.inf)), rough])
    x = np.unique(np.concatenate([x, -x]))
    x = x[np.abs(x) <= largest]
    return {"x": bits(x), "code": x.astype(dtype).view(storage).tolist()}


def main():
    golden = {
        "e2m1": decoded(ml_dtypes.float4_e2m1fn, range(16)),
        "e4m3": decoded(ml_dtypes.float8_e4m3fn, range(256)),
        "e8m0": decoded(ml_dtypes.float8_e8m0fnu, range(256)),
        "encode_e2m1": roundings(ml_dtypes.float4_e2m1fn, np.uint8, 6),
        "encode_e4m3": roundings(ml_dtypes.float8_e4m3fn, np.uint8, 448),
        "encode_bf16": roundings(ml_dtypes.bfloat16, np.uint16, 3e38),
        "encode_f16": roundings(np.float16, np.uint16, 65504),
    }
    text = json.dumps(golden, separators=(",", ":")) + "\n"
    if "--check" in sys.argv:
        sys.exit(0 if OUT.read_text() == text else "ml_dtypes now gives other codes than " + str(OUT))
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text)


if __name__ == "__main__":
    main()
