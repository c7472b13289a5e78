// SPDX-License-Identifier: Apache-2.0
// Tensors of operands, and the bits that all generated operands come from.
#include "probe/make_operands.h"

#include <cstring>

#include "core/small_floats.h"

namespace nibble {
namespace {

constexpr std::int64_t kQ8Elements = 32, kQ8Bytes = 34;
constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;

Status check_sizes(const GemmProblem& problem) {
  const auto& [m, n, k] = problem.shape;
  if (m < 0 || n < 0 || k < 0 || (k > 0 && std::max(m, n) > kMaxElements / k)) {
    return fail(ErrorKind::invalid_argument, "operands of m=" + std::to_string(m) +
                                                 " n=" + std::to_string(n) +
                                                 " k=" + std::to_string(k) + ": out of range");
  }
  if (problem.a == Activation::q8_0 && k % kQ8Elements != 0)
    return fail(ErrorKind::invalid_argument,
                "k=" + std::to_string(k) + " is not a multiple of 32, the Q8_0 block");
  return {};
}

}  // namespace

DenseTensorView DenseTensor::view() const {
  return {type, rows, columns, columns * dense_bytes(type), data};
}

void DenseTensor::set(std::int64_t row, std::int64_t column, float value) {
  std::byte* at = data.data() + (row * columns + column) * dense_bytes(type);
  if (type == DenseType::f32) {
    std::memcpy(at, &value, sizeof value);
    return;
  }
  const std::uint16_t bits = type == DenseType::bf16 ? bf16_encode(value) : f16_encode(value);
  std::memcpy(at, &bits, sizeof bits);
}

Q8TensorView Q8Tensor::view() const { return {rows, columns, data}; }

void Q8Tensor::set_scale(std::int64_t row, std::int64_t block, std::uint16_t f16_bits) {
  std::memcpy(data.data() + (row * (columns / kQ8Elements) + block) * kQ8Bytes, &f16_bits,
              sizeof f16_bits);
}

void Q8Tensor::set_code(std::int64_t row, std::int64_t column, std::int8_t code) {
  const std::int64_t block = row * (columns / kQ8Elements) + column / kQ8Elements;
  std::memcpy(data.data() + block * kQ8Bytes + 2 + column % kQ8Elements, &code, 1);
}

GemmInputs Operands::inputs() const {
  return {std::visit([](const auto& tensor) -> ActivationView { return tensor.view(); }, a),
          b.view(), alpha};
}

std::uint64_t RandomBits::next() {
  std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

std::int64_t RandomBits::below(std::int64_t count) {
  NIBBLE_CHECK(count > 0, "a range to draw from is not empty");
  return static_cast<std::int64_t>(
      (static_cast<unsigned __int128>(next()) * static_cast<std::uint64_t>(count)) >> 64);
}

float RandomBits::normal() {
  std::int32_t sum = 0;
  for (int draw = 0; draw < 3; ++draw) {
    const std::uint64_t bits = next();
    for (int part = 0; part < 4; ++part)
      sum += static_cast<std::int32_t>((bits >> (16 * part)) & 0xFFFF);
  }
  return static_cast<float>(2 * sum - 12 * 65535) * 0x1p-17f;
}

std::uint64_t hash(std::uint64_t seed, std::int64_t row, std::int64_t column) {
  const std::uint64_t of_row = RandomBits(seed ^ static_cast<std::uint64_t>(row)).next();
  return RandomBits(of_row + static_cast<std::uint64_t>(column)).next();
}

Result<Operands> make_zero_operands(const GemmProblem& problem) {
  if (auto ok = check_sizes(problem); !ok) return tl::unexpected(ok.error());
  const auto& [m, n, k] = problem.shape;
  Operands operands;
  auto b = make_block_tensor(problem.b, n, k, problem.b_scales);
  if (!b) return tl::unexpected(b.error());
  operands.b = std::move(*b);
  if (is_block_format(problem.a)) {
    const Format format = problem.a == Activation::nvfp4 ? Format::nvfp4 : Format::mxfp4;
    auto a = make_block_tensor(format, m, k, problem.a_scales);
    if (!a) return tl::unexpected(a.error());
    operands.a = std::move(*a);
  } else if (problem.a == Activation::q8_0) {
    operands.a = Q8Tensor{
        m, k, std::vector<std::byte>(static_cast<std::size_t>(m * (k / kQ8Elements) * kQ8Bytes))};
  } else {
    const DenseType type = problem.a == Activation::bf16 ? DenseType::bf16 : DenseType::f16;
    operands.a = DenseTensor{
        type, m, k, std::vector<std::byte>(static_cast<std::size_t>(m * k * dense_bytes(type)))};
  }
  return operands;
}

void set_code(BlockTensor& tensor, std::int64_t row, std::int64_t column, std::uint8_t code) {
  std::uint8_t& byte =
      tensor.codes[static_cast<std::size_t>(row * (tensor.columns / 2) + column / 2)];
  byte = (column & 1) ? static_cast<std::uint8_t>((byte & 0x0F) | (code << 4))
                      : static_cast<std::uint8_t>((byte & 0xF0) | (code & 0x0F));
}

void set_scale(BlockTensor& tensor, std::int64_t row, std::int64_t block, std::uint8_t byte) {
  tensor.scales[static_cast<std::size_t>(tensor.layout.offset(row, block))] = byte;
}

std::uint8_t scale_byte(Format format, int exponent) {
  if (format == Format::mxfp4) return static_cast<std::uint8_t>(exponent + 127);
  if (exponent < -6) return static_cast<std::uint8_t>(1 << (exponent + 9));
  return static_cast<std::uint8_t>((exponent + 7) << 3);
}

}  // namespace nibble
