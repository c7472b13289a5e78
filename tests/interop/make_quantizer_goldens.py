#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hard tensors through every quantizer rule, by other means than nibble's.

Writes tests/data/quantize/rules.json; with --check compares it with what is there. rn, floor, ceil and even come from Python fractions, flashinfer from numpy float32
in the order of docs/formats.md, the others from the producers' libraries (torch 2.11.0, nvidia-modelopt 0.47.0,
compressed-tensors 0.20.1, torchao 0.18.0, gguf 0.19.0, transformers 5.14.1), on a CPU. Floats are hex of their bits.
"""
import json
import pathlib
import sys
import warnings
from fractions import Fraction

import numpy as np

warnings.filterwarnings("ignore")
OUT = pathlib.Path(__file__).parent.parent / "data" / "quantize" / "rules.json"
F = np.float32
E2M1 = [Fraction(v, 2) for v in (0, 1, 2, 3, 4, 6, 8, 12)]
E4M3 = [Fraction(b & 7, 512) if b < 8 else Fraction(8 + (b & 7), 8) * Fraction(2) ** ((b >> 3) - 7) for b in range(127)]
FMAX = F(np.finfo(F).max)


def nearest(table, v):
    """Index of the entry nearest to v >= 0, the even index of two; the last one beyond the table."""
    low, high = 0, len(table) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if table[middle] <= v else (low, middle)
    below, above = v - table[low], table[high] - v
    return low if below < above or (below == above and low % 2 == 0) else high


def sign_bit(x):
    return 8 if np.signbit(x) else 0


def packed(codes):
    codes = np.asarray(codes, np.uint8)
    return (codes[..., 0::2] | (codes[..., 1::2] << 4)).tobytes().hex()


def result(codes, scales, multiplier=None, divisor=None, lost=0):
    out = {"codes": packed(codes), "scales": np.asarray(scales, np.uint8).tobytes().hex(), "lost": int(lost)}
    for key, value in (("multiplier", multiplier), ("divisor", divisor)):
        if value is not None:
            out[key] = int(np.asarray(value, F).reshape(()).view(np.uint32))
    return out


def blocks_of(x, size):
    return x.reshape(x.shape[0], -1, size)


# ---- nibble's own rules, in rational numbers
def nvfp4_rn(x, amax, g):
    if g is None:
        g = F(1) if amax == 0 else max(F(amax) / F(2688), F(2.0 ** -126))
    exact_g, scales, codes, lost = Fraction(float(g)), [], [], 0
    for block in blocks_of(x, 16).reshape(-1, 16):
        bm = max(abs(Fraction(float(v))) for v in block)
        scales.append(nearest(E4M3, bm / (6 * exact_g)))
        unit = E4M3[scales[-1]] * exact_g
        if unit == 0:
            lost += int((block != 0).sum())
            codes.append([0] * 16)
        else:
            codes.append([nearest(E2M1, abs(Fraction(float(v))) / unit) | sign_bit(v) for v in block])
    return result(codes, scales, multiplier=g, lost=lost)


def floor_log2(v):
    e = v.numerator.bit_length() - v.denominator.bit_length()
    return e if Fraction(2) ** e <= v else e - 1


def own_exponent(rule, bm):
    if bm == 0:
        return -127
    k = floor_log2(bm)
    if rule == "floor":
        e = k - 2
    elif rule == "ceil":
        e = k - 4
        while 6 * Fraction(2) ** e < bm:
            e += 1
    else:
        two_bits = round(bm / Fraction(2) ** (k - 1))  # 2 or 3, or 4 where it carries; Python rounds ties to even
        e = k - 2 + (two_bits == 4)
    return min(max(e, -127), 127)


def mxfp4_own(rule, x):
    scales, codes = [], []
    for block in blocks_of(x, 32).reshape(-1, 32):
        e = own_exponent(rule, max(abs(Fraction(float(v))) for v in block))
        scales.append(e + 127)
        codes.append([nearest(E2M1, abs(Fraction(float(v))) / Fraction(2) ** e) | sign_bit(v) for v in block])
    return result(codes, scales)


# ---- the order of operations of FlashInfer's exact mode, in numpy float32
def nvfp4_flashinfer(x, amax, divisor):
    with np.errstate(all="ignore"):
        if divisor is None:
            divisor = F(1) if amax == 0 else min(F(2688) / F(amax), FMAX)
        b = blocks_of(x, 16)
        bm = np.abs(b).max(-1)
        wanted = bm * (divisor * (F(1) / F(6)))
        scales = np.array([nearest(E4M3, Fraction(float(min(v, F(448))))) for v in wanted.ravel()]).reshape(bm.shape)
        s = np.array([float(E4M3[i]) for i in scales.ravel()], F).reshape(bm.shape)
        reciprocal = np.minimum(F(1) / (s * (F(1) / divisor)), FMAX)
        reciprocal[bm == 0] = 0
        y = b * reciprocal[..., None]
        codes = [nearest(E2M1, Fraction(float(min(abs(v), F(6))))) | sign_bit(v) for v in y.ravel()]
    lost = (b[(scales == 0)] != 0).sum()
    return result(codes, scales, multiplier=F(1) / divisor, divisor=divisor, lost=lost)


# ---- the producers' libraries
def low_first(t):
    t = t.contiguous().view(torch.uint8).numpy()
    return np.stack([t & 15, t >> 4], -1).reshape(t.shape[0], -1)


def scale_bytes(t):
    return t.contiguous().view(torch.uint8).numpy()


def as_tensor(x, bf16):
    t = torch.from_numpy(x.copy())
    return t.to(torch.bfloat16) if bf16 else t


def nvfp4_modelopt(x, amax, g, bf16):
    from modelopt.torch.quantization.qtensor import NVFP4QTensor
    g = torch.tensor(F(amax) / F(2688) if g is None else g)
    q, s, g = NVFP4QTensor.quantize(as_tensor(x, bf16), 16, weights_scaling_factor_2=g)
    wanted = np.abs(blocks_of(x, 16)).max(-1) / (F(6) * g.numpy())
    lost = (blocks_of(x, 16)[wanted == 0] != 0).sum()
    return result(low_first(q._quantized_data), scale_bytes(s), multiplier=g.numpy(), lost=lost)


def nvfp4_torchao(x, amax, g, bf16):
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale
    g = per_tensor_amax_to_scale(torch.tensor(amax)) if g is None else torch.tensor(g)
    t = NVFP4Tensor.to_nvfp4(as_tensor(x, bf16), block_size=16, per_tensor_scale=g)
    return result(low_first(t.qdata), scale_bytes(t.scale), multiplier=g.numpy())


def compressed_state(w, preset, divisor):
    from compressed_tensors.compressors.mxfp4 import MXFP4PackedCompressor
    from compressed_tensors.compressors.nvfp4 import NVFP4PackedCompressor
    from compressed_tensors.quantization import preset_name_to_scheme
    from compressed_tensors.quantization.utils import compute_dynamic_scales_and_zp
    scheme = preset_name_to_scheme(preset, targets=["Linear"])
    scales, _ = compute_dynamic_scales_and_zp(w, scheme.weights, None, global_scale=divisor)
    state = {"weight": w.clone(), "weight_scale": scales}
    if divisor is not None:
        state["weight_global_scale"] = divisor
    return (NVFP4PackedCompressor if divisor is not None else MXFP4PackedCompressor).compress(state, scheme)


def nvfp4_compressed_tensors(x, amax, divisor, bf16):
    from compressed_tensors.quantization.utils import generate_gparam
    w = as_tensor(x, bf16)
    a = torch.tensor(amax).to(w.dtype)
    divisor = generate_gparam(-a, a) if divisor is None else torch.tensor([divisor])
    state = compressed_state(w, "NVFP4A16", divisor)
    sixth = np.abs(blocks_of(x, 16)).max(-1) / F(6)
    if bf16:
        sixth = torch.from_numpy(sixth).to(torch.bfloat16).float().numpy()
    lost = (blocks_of(x, 16)[divisor.numpy() * sixth <= F(2.0 ** -10)] != 0).sum()
    return result(low_first(state["weight_packed"]), scale_bytes(state["weight_scale"]),
                  multiplier=F(1) / divisor.numpy(), divisor=divisor.numpy(), lost=lost)


def mxfp4_modelopt(x, bf16):
    from modelopt.torch.quantization.qtensor import MXFP4QTensor
    q, s = MXFP4QTensor.quantize(as_tensor(x, bf16), 32)
    return result(low_first(q._quantized_data), scale_bytes(s))


def mxfp4_compressed_tensors(x, bf16):
    state = compressed_state(as_tensor(x, bf16), "MXFP4A16", None)
    return result(low_first(state["weight_packed"]), scale_bytes(state["weight_scale"]))


def mxfp4_torchao(x, bf16, mode):
    from torchao.prototype.mx_formats.config import ScaleCalculationMode
    from torchao.prototype.mx_formats.mx_tensor import MXTensor
    t = MXTensor.to_mx(as_tensor(x, bf16), torch.float4_e2m1fn_x2, 32, scaling_mode=ScaleCalculationMode[mode])
    return result(low_first(t.qdata), scale_bytes(t.scale))


def mxfp4_gguf(x):
    import gguf
    raw = gguf.quants.quantize(x.copy(), gguf.GGMLQuantizationType.MXFP4).reshape(x.shape[0], -1, 17)
    return result(np.concatenate([raw[..., 1:] & 15, raw[..., 1:] >> 4], -1), raw[..., 0])


# ---- the tensors
def around(v):
    """v and its neighbours, one and two floats away."""
    v = F(v)
    down, up = np.nextafter(v, F(0)), np.nextafter(v, F(np.inf))
    return [np.nextafter(down, F(0)), down, v, up, np.nextafter(up, F(np.inf))]


def filled(values, rng, rows, columns=64):
    """The values in order, then some of them again, with random signs."""
    values = np.asarray(values, F)
    need = rows * columns
    assert len(values) <= need, (len(values), need)
    more = np.resize(values, need)
    return (more * rng.choice([-1, 1], need)).astype(F).reshape(rows, columns)


def code_ties(rng, g, scales=(448, 1.125, 0.875, 13 / 8, 2.0 ** -6, 5 * 2.0 ** -9)):
    """Every bound of E2M1 and its neighbours, in blocks whose largest is exactly 6 s g, so that s is the block scale."""
    rows = []
    for s in scales:
        unit = Fraction(s) * Fraction(float(g))
        values = [v for b in (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5) for v in around(float(Fraction(b) * unit))]
        row = np.zeros(64, F)
        row[::16] = F(float(6 * unit))
        row[[i for i in range(64) if i % 16][:len(values)]] = values
        rows.append(row * rng.choice([-1, 1], 64).astype(F))
    rows[0][0] = F(2688 * float(g))
    return np.stack(rows).astype(F)


def scale_ties(rng, g):
    """Blocks whose largest lies on, or next to, the middle of two neighbouring E4M3 scales times 6 g."""
    middles = [float((E4M3[i] + E4M3[i + 1]) / 2 * 6 * Fraction(float(g))) for i in range(126)]
    tops = [v for m in middles for v in around(m)[1:4]]
    x = np.zeros((32, 256), F)
    for i, top in enumerate(tops):
        r, c = divmod(i, 16)
        block = (rng.uniform(-1, 1, 16) * top).astype(F)
        block[rng.integers(16)] = top
        x[r, 16 * c:16 * c + 16] = block
    x[31, 255] = F(2688 * float(g))
    return x


def tensors():
    """(name, x, amax or None, multiplier or None, bf16, rules to leave out)."""
    rng = np.random.default_rng(17)
    bf = lambda a: (np.ascontiguousarray(a, F).view(np.uint32) & 0xFFFF0000).view(F)  # noqa: E731
    few_bits = F(float.fromhex('0x1.2d5ap-9'))  # 17 bits: the bounds times s times g are floats, so ties are ties
    any_bits = F(float.fromhex("0x1.8306bep-1"))  # 24 bits: what lies beside a tie depends on the order of operations
    normal = (rng.standard_normal((16, 64)) * 0.05).astype(F)
    spread = lambda low, high, n=16: np.ldexp(rng.uniform(-1, 1, (n, 64)), rng.integers(low, high, (n, 64))).astype(F)  # noqa: E731
    block_spread = np.ldexp(rng.standard_normal((16, 4, 16)), rng.integers(-22, 3, (16, 4, 1))).astype(F).reshape(16, 64)
    zeros = normal[:6].copy()
    zeros[0] = 0
    zeros[1] = -0.0
    zeros[2, :16] = -0.0
    zeros[3, ::2] = -0.0
    zeros[4, 16:32] *= F(1e-9)
    zeros[5, :32] *= F(1e-30)
    powers = [v for k in (-100, -20, -9, -4, -1, 0, 2, 3, 5, 17, 63, 99) for m in (1, 1.5, 1.75) for v in around(m * 2.0 ** k)]
    tops = filled(powers, rng, len(powers), 1)
    power_blocks = np.concatenate([tops, tops * rng.uniform(-1, 1, (len(powers), 31)).astype(F)], 1).reshape(-1, 64).astype(F)
    sixes = [v for k in (-60, -8, 0, 31) for m in (6, 3) for v in around(m * 2.0 ** k)]
    tops = filled(sixes, rng, len(sixes), 1)
    six_blocks = np.concatenate([tops, tops * rng.uniform(-1, 1, (len(sixes), 31)).astype(F)], 1).reshape(-1, 64).astype(F)
    underflow = np.where(np.arange(64) % 32 == 1, F(2.0 ** 90), -np.ldexp(F(1), rng.integers(-80, -20, (4, 64)))).astype(F)
    mx_ties = np.concatenate([filled([v for b in (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5) for v in around(b * 2.0 ** k)] + [6 * 2.0 ** k] * 29,
                                     rng, 1) for k in (-40, -3, 0, 7)])
    small_g = ["nvfp4 modelopt", "nvfp4 torchao"]  # their g is subnormal or their reciprocal inf: see docs/formats.md
    no_wrap = ["mxfp4 gguf"]  # gguf-py's exponent wraps below 2^-125
    return [
        ("normal", normal, None, None, False, []),
        ("normal_bf16", bf(normal), None, None, True, []),
        ("wide", spread(-20, 20), None, None, False, []),
        ("wide_bf16", bf(spread(-20, 20)), None, None, True, []),
        ("blocks_far_apart", block_spread, None, None, False, []),
        ("blocks_far_apart_bf16", bf(block_spread), None, None, True, []),
        ("underflow", underflow, None, None, False, []),
        ("underflow_bf16", underflow, None, None, True, []),
        ("zeros", zeros, None, None, False, []),
        ("zeros_bf16", bf(zeros), None, None, True, []),
        ("code_ties", code_ties(rng, few_bits), None, None, False, []),
        ("code_ties_power_of_two", code_ties(rng, F(2.0 ** -7)), None, None, False, []),
        ("code_ties_of_any_g", code_ties(rng, any_bits, [float(v) for v in E4M3[126:8:-4]]), None, any_bits, False, []),
        ("scale_ties", scale_ties(rng, few_bits), None, None, False, []),
        ("scale_ties_of_any_g", scale_ties(rng, any_bits), None, any_bits, False, []),
        ("shared_amax", normal, F(1.7), None, False, []),
        ("amax_too_small", normal, F(0.02), None, False, []),
        ("one_level", normal, None, F(1), False, []),
        ("powers", power_blocks, None, None, False, []),
        ("sixes", six_blocks, None, None, False, []),
        ("mx_ties", mx_ties, None, None, False, []),
        ("huge", spread(100, 126, 8), None, None, False, []),
        ("largest", np.full((1, 64), np.finfo(F).max, F) * rng.choice([-1, 1], (1, 64)).astype(F), None, None, False,
         ["mxfp4 compressed_tensors", "mxfp4 gguf"]),  # a scale, or a candidate, of theirs overflows float32
        ("tiny", spread(-110, -90, 8), None, None, False, []),
        ("tinier", spread(-135, -115, 8), None, None, False, small_g + no_wrap),
        ("subnormal", spread(-149, -127, 8), None, None, False, small_g + no_wrap),
        ("subnormal_beside_normal", np.concatenate([spread(-149, -120, 4), spread(-3, 3, 4)]), None, None, False, no_wrap),
        ("all_zero", np.zeros((2, 64), F), None, None, False, ["nvfp4 modelopt", "nvfp4 torchao"]),
    ]


def rules(x, amax, g, bf16):
    divisor = None if g is None else F(1) / g
    yield "nvfp4 rn", lambda: nvfp4_rn(x, amax, g)
    yield "nvfp4 flashinfer", lambda: nvfp4_flashinfer(x, amax, divisor)
    yield "nvfp4 modelopt", lambda: nvfp4_modelopt(x, amax, g, bf16)
    yield "nvfp4 torchao", lambda: nvfp4_torchao(x, amax, g, bf16)
    yield "nvfp4 compressed_tensors", lambda: nvfp4_compressed_tensors(x, amax, divisor, bf16)
    for rule in ("floor", "ceil", "even"):
        yield "mxfp4 " + rule, lambda rule=rule: mxfp4_own(rule, x)
    yield "mxfp4 modelopt", lambda: mxfp4_modelopt(x, bf16)
    yield "mxfp4 compressed_tensors", lambda: mxfp4_compressed_tensors(x, bf16)
    yield "mxfp4 torchao_floor", lambda: mxfp4_torchao(x, bf16, "FLOOR")
    yield "mxfp4 torchao_rceil", lambda: mxfp4_torchao(x, bf16, "RCEIL")
    yield "mxfp4 gguf", lambda: mxfp4_gguf(x)


def main():
    cases = []
    for name, x, amax, g, bf16, left_out in tensors():
        x = np.ascontiguousarray(x, F)
        case = {"name": name, "rows": x.shape[0], "columns": x.shape[1], "x": x.view(np.uint32).astype(">u4").tobytes().hex(),
                "source_is_bf16": bf16, "results": {}}
        if amax is not None:
            case["tensor_amax"] = int(F(amax).view(np.uint32))
        if g is not None:
            case["multiplier"] = int(F(g).view(np.uint32))
        amax = F(np.abs(x).max()) if amax is None else F(amax)
        for rule, run in rules(x, amax, g, bf16):
            if rule not in left_out and not (rule.startswith("mxfp4") and ("tensor_amax" in case or "multiplier" in case)):
                case["results"][rule] = run()
        cases.append(case)
    text = "{\"cases\": [\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]}\n"
    if "--check" in sys.argv:
        sys.exit(0 if OUT.read_text() == text else f"{OUT} is not what this script makes")
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(text)


if __name__ == "__main__":
    import torch
    torch.set_num_threads(1)
    main()
