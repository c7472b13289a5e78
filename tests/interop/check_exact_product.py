#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small exact products computed with fractions over ml_dtypes decoding: operands, and what exact_product() must give.

Writes tests/data/exact_product/cases.json; with --check compares it with what is there. Needs numpy and ml_dtypes.
Operand bytes are hex; results are bit patterns, so that NaN and -0 survive JSON.
"""
import json
import math
import pathlib
import struct
import sys
from fractions import Fraction

import ml_dtypes
import numpy as np

OUT = pathlib.Path(__file__).parent.parent / "data" / "exact_product" / "cases.json"
BLOCK = {"nvfp4": 16, "mxfp4": 32}
DENSE = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32}
# precision with the leading bit, exponent of the least subnormal, largest exponent, width
OUT_TYPE = {"bf16": (8, -133, 127, 16), "f16": (11, -24, 15, 16), "f32": (24, -149, 127, 32)}
QUIET_NAN = {"bf16": 0x7FC0, "f16": 0x7E00, "f32": 0x7FC00000}
LAYOUTS = ["row_major", "tiled_128x4", "tiled_8x4"]
NAN = float("nan")


# ---- operands: bytes and the values they stand for

def tiled(scales, layout):
    rows, blocks = scales.shape
    if layout == "row_major":
        return scales.tobytes()
    height = 128 if layout == "tiled_128x4" else 8
    padded = np.zeros((-(-rows // height) * height, -(-blocks // 4) * 4), np.uint8)
    padded[:rows, :blocks] = scales
    tiles = padded.reshape(padded.shape[0] // height, height // min(height, 32), min(height, 32), padded.shape[1] // 4, 4)
    return np.ascontiguousarray(tiles.transpose(0, 3, 2, 1, 4)).tobytes()


def block_operand(kind, codes, scales, layout="row_major", extra_stride=0):
    """codes [rows, k] of 0..15, scales [rows, k / block] of bytes."""
    codes, scales = np.asarray(codes, np.uint8), np.asarray(scales, np.uint8)
    rows, k = codes.shape
    packed = np.full((rows, k // 2 + extra_stride), 0xEE, np.uint8)
    packed[:, : k // 2] = codes[:, 0::2] | (codes[:, 1::2] << 4)
    element = codes.view(ml_dtypes.float4_e2m1fn).astype(np.float64)
    if kind == "nvfp4":
        scale = (scales & 0x7F).view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    else:
        scale = scales.view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    values = element * np.repeat(scale, BLOCK[kind], axis=1)
    return {"kind": kind, "rows": rows, "columns": k, "stride": k // 2 + extra_stride, "data": packed.tobytes().hex(),
            "layout": layout, "scales": tiled(scales, layout).hex()}, values


def dense_operand(kind, values, extra_stride=0):
    with np.errstate(over="ignore"):
        stored = np.asarray(values, np.float64).astype(np.float32).astype(DENSE[kind])
    rows, k = stored.shape
    width = stored.dtype.itemsize
    padded = np.full((rows, k * width + extra_stride), 0xEE, np.uint8)
    padded[:, : k * width] = np.ascontiguousarray(stored).view(np.uint8).reshape(rows, k * width)
    return {"kind": kind, "rows": rows, "columns": k, "stride": k * width + extra_stride, "data": padded.tobytes().hex()}, \
        stored.astype(np.float64)


def q8_operand(scales, codes):
    scales, codes = np.asarray(scales, np.float16), np.asarray(codes, np.int8)
    rows, k = codes.shape
    data = b"".join(scales[r, c : c + 1].tobytes() + codes[r, 32 * c : 32 * c + 32].tobytes()
                    for r in range(rows) for c in range(k // 32))
    with np.errstate(invalid="ignore"):
        values = np.repeat(scales.astype(np.float64), 32, axis=1) * codes
    return {"kind": "q8_0", "rows": rows, "columns": k, "stride": 0, "data": data.hex()}, values


# ---- the definition

def rounded(value, out):
    """Bits of a fraction rounded once to nearest even."""
    precision, least, greatest, width = OUT_TYPE[out]
    sign = (1 << (width - 1)) if value < 0 else 0
    value = abs(value)
    if value == 0:
        return 0
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if Fraction(2) ** exponent > value:
        exponent -= 1
    last = max(exponent - precision + 1, least)
    whole = round(value / Fraction(2) ** last)  # Python rounds a fraction half to even
    if whole >= 2**precision:
        whole, last = whole // 2, last + 1
    if whole * Fraction(2) ** last >= Fraction(2) ** (greatest + 1):
        return sign | infinity(out)
    if whole < 2 ** (precision - 1):
        return sign | whole
    return sign | ((last - least + 1) << (precision - 1)) | (whole - 2 ** (precision - 1))


def infinity(out):
    return {"bf16": 0x7F80, "f16": 0x7C00, "f32": 0x7F800000}[out]


def double_bits(x):
    return struct.pack(">d", x).hex()


def rounded_up(value):
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def ieee_sum(a, b, alpha):
    """Where an operand or alpha is inf or NaN: what IEEE arithmetic gives, from the signs alone."""
    total = 0.0
    for x, y in zip(a, b):
        if math.isinf(x) or math.isnan(x) or math.isnan(y):
            total += x * y if y == 0 or math.isnan(x) or math.isnan(y) else math.copysign(math.inf, x) * math.copysign(1, y)
    if total == 0.0:
        exact = sum((Fraction(x) * Fraction(y) for x, y in zip(a, b)), Fraction(0))
        total = float((exact > 0) - (exact < 0))
    return total * alpha


def element(a, b, alpha, out):
    """Expected (rounded bits, value, magnitude, outside_fp32) of one output."""
    a, b = [float(x) for x in a], [float(y) for y in b]
    operands_finite = all(map(math.isfinite, a)) and all(map(math.isfinite, b))
    outside = False
    if operands_finite:
        products = [Fraction(x) * Fraction(y) for x, y in zip(a, b)]
        total, absolute = sum(products, Fraction(0)), sum(map(abs, products), Fraction(0))
        tiny = sum(1 for p in products if 0 < abs(p) < Fraction(2) ** -126)
        outside = absolute >= 2**128 or tiny * Fraction(2) ** -126 > Fraction(2) ** -24 * absolute
    if not (operands_finite and math.isfinite(alpha)):
        special = ieee_sum(a, b, alpha)
        if math.isnan(special):
            return QUIET_NAN[out], NAN, NAN, outside
        sign = (1 << (OUT_TYPE[out][3] - 1)) if special < 0 else 0
        return sign | infinity(out), special, math.inf, outside
    value, magnitude = Fraction(alpha) * total, abs(Fraction(alpha)) * absolute
    outside = outside or magnitude >= 2**128
    return rounded(value, out), float(value), rounded_up(magnitude), outside


def make_case(name, a, b, out, alpha=1.0):
    (a_bytes, a_values), (b_bytes, b_values) = a, b
    alpha = float(np.float32(alpha))
    expected = [element(row, column, alpha, out) for row in a_values for column in b_values]
    return {"name": name, "out": out, "alpha": struct.pack(">f", alpha).hex(), "a": a_bytes, "b": b_bytes,
            "rounded": [e[0] for e in expected], "value": [double_bits(e[1]) for e in expected],
            "magnitude": [double_bits(e[2]) for e in expected], "outside_fp32": [int(e[3]) for e in expected]}


# ---- cases

def random_block(rng, kind, rows, k, low, high, **where):
    return block_operand(kind, rng.integers(0, 16, (rows, k)), rng.integers(low, high, (rows, k // BLOCK[kind])), **where)


def random_activation(rng, kind, rows, k, **where):
    if kind == "nvfp4":
        return random_block(rng, kind, rows, k, 0, 255 - 128, **where)
    if kind == "mxfp4":
        return random_block(rng, kind, rows, k, 90, 160, **where)
    if kind == "q8_0":
        return q8_operand(rng.standard_normal((rows, k // 32)), rng.integers(-128, 128, (rows, k)))
    spread = {"bf16": 60, "f32": 100, "f16": 12}[kind]
    values = rng.standard_normal((rows, k)) * np.exp2(rng.integers(-spread, spread, (rows, k)))
    return dense_operand(kind, values, extra_stride=8)


def one_row_sums(rows):
    """A in f32 with the given values in each row, B all ones: the sum of a row is what is tested."""
    values = np.zeros((len(rows), 32))
    for r, row in enumerate(rows):
        values[r, : len(row)] = row
    return dense_operand("f32", values), block_operand("nvfp4", np.full((1, 32), 2), np.full((1, 2), 0x38))


def random_cases():
    rng = np.random.default_rng(11)
    for index, (kind, b_kind, out) in enumerate((a, b, o) for a in ["nvfp4", "mxfp4", "bf16", "f16", "f32", "q8_0"]
                                                for b in ["nvfp4", "mxfp4"] for o in ["bf16", "f16", "f32"]):
        k = 64 if "mxfp4" in (kind, b_kind) or kind == "q8_0" else 48
        where = dict(layout=LAYOUTS[index % 2 * 2], extra_stride=index % 3) if kind in BLOCK else {}
        a = random_activation(rng, kind, 2, k, **where)
        low, high = (0, 127) if b_kind == "nvfp4" else (100, 150)
        b = random_block(rng, b_kind, 3, k, low, high, layout=LAYOUTS[(index + 1) % 2 * 2], extra_stride=index % 2)
        yield make_case(f"random {kind} x {b_kind} to {out}", a, b, out, rng.standard_normal() * 2.0 ** rng.integers(-8, 8))
    a = random_block(rng, "nvfp4", 3, 80, 0, 127, layout="tiled_128x4")
    b = random_block(rng, "nvfp4", 2, 80, 0x80, 0xFF, layout="tiled_128x4")
    yield make_case("128x4 tiles on both sides, sign bits of scales ignored", a, b, "f32", 0.37)


def rounding_cases():
    tie_bits = {"bf16": 8, "f16": 11, "f32": 24}
    for out, p in tie_bits.items():
        top = 2.0**p if out != "f16" else 2.0**11
        step = top / 2.0 ** (p - 1)
        sums = [[top, step / 2], [top, step, step / 2], [top, step / 2, 2.0**-30], [top, step, step / 2, -(2.0**-30)],
                [-top, -step / 2], [-top, -step, -step / 2], [top, step / 2, 2.0**-149], [2 * top, -step / 4], [2 * top, -step / 2]]
        yield make_case(f"ties to even and beside them, {out}", *one_row_sums(sums), out)
    subnormal = [[1], [0.5], [1.5], [2.5], [0.5, 2.0**-60], [0.5, -(2.0**-60)], [-1.5], [0.25], [127.5], [2.0**23 - 0.5], [1023.5]]
    for out, least in [("bf16", -133), ("f16", -24), ("f32", -149)]:
        yield make_case(f"subnormal results, {out}", *one_row_sums(subnormal), out, 2.0**least)
    for out, scale, precision in [("bf16", 2.0**127, 8), ("f16", 2.0**15, 11), ("f32", 2.0**127, 24)]:
        largest = 2 - 2.0 ** (1 - precision)
        half = 2.0**-precision
        sums = [[largest], [largest, half], [largest, half, -(2.0**-40)], [-largest, -half], [2.0], [-largest, -half, 2.0**-140], [largest, half / 2]]
        yield make_case(f"round the overflow threshold, {out}", *one_row_sums(sums), out, scale)


def corner_cases():
    rng = np.random.default_rng(12)
    big = [[2.0**100, 2.0**-100, -(2.0**100)], [2.0**127, -(2.0**127)], [2.0**127, 1, -(2.0**127), 2.0**-149], [3, -1, -2], [0, -0.0], []]
    for out in OUT_TYPE:
        yield make_case(f"cancellation, {out}", *one_row_sums(big), out, -1.0)
    specials = [[math.inf], [-math.inf, 1], [math.inf, -math.inf], [NAN], [1, 2], [math.inf, 2.0**127]]
    for alpha in [1.0, -2.0, 0.0, math.inf, NAN]:
        yield make_case(f"inf and NaN in A, alpha {alpha}", *one_row_sums(specials), "bf16", alpha)
    a = dense_operand("f16", [[math.inf] + [0.0] * 31, [1.0] * 31 + [-math.inf]])
    codes = np.full((3, 32), 2)
    codes[0, 0], codes[1, 31] = 0, 8
    yield make_case("inf times a zero code, a zero scale", a, block_operand("nvfp4", codes, [[0x38, 0x38], [0x38, 0x38], [0, 0x38]]), "f16")
    for kind, bad in [("nvfp4", 0x7F), ("nvfp4", 0xFF), ("mxfp4", 0xFF)]:
        scales = np.full((3, 64 // BLOCK[kind]), 0x38 if kind == "nvfp4" else 127)
        scales[1, 1] = bad
        clean = random_block(rng, kind, 2, 64, 0x30, 0x40) if kind == "nvfp4" else random_block(rng, kind, 2, 64, 120, 130)
        poisoned = block_operand(kind, np.zeros((3, 64)), scales)
        yield make_case(f"NaN scale {bad:#x} in B, {kind}", clean, poisoned, "f32")
        yield make_case(f"NaN scale {bad:#x} in A, {kind}", poisoned, clean, "bf16")
    for alpha in [0.0, -0.0, -1.0, 2.0**-149, 2.0**-130 + 2.0**-149, 3.4e38, -math.inf, NAN, 1 / 3]:
        for out in ["f32", "bf16"] if abs(alpha) < 1 else ["f16"]:
            a, b = random_block(rng, "nvfp4", 2, 32, 0, 127), random_block(rng, "nvfp4", 2, 32, 0, 127)
            yield make_case(f"alpha {alpha:.3g} to {out}", a, b, out, alpha)
    a = block_operand("nvfp4", [[1] * 16 + [9] * 16], [[0x38, 0x38]])
    yield make_case("infinite alpha times an exact zero", a, block_operand("nvfp4", [[1] * 32], [[0x38, 0x38]]), "f32", math.inf)


def range_cases():
    one = np.full((1, 64), 2)
    for exponents in [(127, 127), (255 - 1, 127), (190, 190), (190, 185), (190, 184), (0, 127), (63, 64), (64, 64), (0, 0), (65, 65)]:
        a = block_operand("mxfp4", np.vstack([one, one * 0 + 7]), np.array([[exponents[0], 127]] * 2))
        b = block_operand("mxfp4", np.vstack([one, np.eye(1, 64, 3).astype(int) * 2]), np.array([[exponents[1], 64]] * 2))
        yield make_case(f"E8M0 bytes {exponents[0]} and {exponents[1]}", a, b, "f32")
    extremes = np.array([[254, 0], [0, 254]])
    yield make_case("largest and smallest E8M0 scales", block_operand("mxfp4", np.vstack([one, one + 5]), extremes),
                    block_operand("mxfp4", np.vstack([one + 5, one]), extremes), "f32", 2.0**-126)
    # 2^-24 sum|ab| = count 2^-126 exactly, and just off it: only "more than" counts.
    rows = [[2.0**-102, 2.0**-127], [2.0**-101, 2.0**-127], [2.0**-102 * (1 - 2.0**-24), 2.0**-149],
            [2.0**-102 - 2.0**-125, 2.0**-126 + 2.0**-127, 2.0**-127], [2.0**-102, -(2.0**-103), 2.0**-140, 2.0**-141], [2.0**-126], [2.0**-127]]
    yield make_case("products below the smallest normal", *one_row_sums(rows), "f32")
    rows = [[2.0**127, 2.0**127], [2.0**127, -(2.0**127)], [2.0**127, 2.0**127 - 2.0**103], [2.0**126]]
    yield make_case("sums round 2^128", *one_row_sums(rows), "f32")
    yield make_case("sums round 2^128 by alpha", *one_row_sums(rows), "bf16", 4.0)
    yield make_case("sums round 2^128, alpha 0", *one_row_sums(rows), "f16", 0.0)
    largest = block_operand("nvfp4", np.full((2, 32), 7), np.full((2, 2), 0x7E))
    for alpha in [2.0**100, 2.0**101, float(np.float32(2.0**128 / (2688.0**2 * 32)))]:
        yield make_case(f"S round 2^128, nvfp4, alpha {alpha:.6g}", largest, largest, "f32", alpha)


def main():
    cases = [case for make in (random_cases, rounding_cases, corner_cases, range_cases) for case in make()]
    text = '{"cases": [\n' + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]}\n"
    if "--check" in sys.argv:
        sys.exit(0 if OUT.read_text() == text else f"fractions over ml_dtypes now give other results than {OUT}")
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text)
    print(f"{len(cases)} cases, {len(text)} bytes")


main()
