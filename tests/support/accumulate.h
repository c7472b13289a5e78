// SPDX-License-Identifier: Apache-2.0
// How kernels add up the products of one output: honest orders, and faulty ones. Products come as
// doubles that hold them exactly. The same models, in numpy, gave the noise figures of
// docs/verdicts.md.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/e2m1.h"
#include "core/small_floats.h"

namespace nibble::accumulate {

using Products = std::span<const double>;
using Order = std::function<float(Products)>;

inline float sequential(Products p) {
  float sum = 0;
  for (const double x : p) sum = static_cast<float>(static_cast<double>(sum) + x);
  return sum;
}

inline float reversed(Products p) {
  float sum = 0;
  for (std::size_t i = p.size(); i-- > 0;)
    sum = static_cast<float>(static_cast<double>(sum) + p[i]);
  return sum;
}

inline float tree(Products p) {
  std::vector<float> level(p.begin(), p.end());
  while (level.size() > 1) {
    if (level.size() % 2) level.push_back(0);
    for (std::size_t i = 0; i < level.size() / 2; ++i) level[i] = level[2 * i] + level[2 * i + 1];
    level.resize(level.size() / 2);
  }
  return level.empty() ? 0 : level[0];
}

inline float split_8(Products p) {
  float sum = 0;
  for (std::size_t part = 0; part < 8; ++part) {
    const std::size_t begin = p.size() * part / 8, end = p.size() * (part + 1) / 8;
    sum += sequential(p.subspan(begin, end - begin));
  }
  return sum;
}

inline float blocked_16(Products p) {
  float sum = 0;
  for (std::size_t i = 0; i < p.size(); i += 16) {
    double block = 0;
    for (const double x : p.subspan(i, std::min<std::size_t>(16, p.size() - i))) block += x;
    sum = static_cast<float>(static_cast<double>(sum) + block);
  }
  return sum;
}

// A tensor core: `chunk` products and the sum are aligned to the largest of them, each cut off
// `bits` below it, added, and the result cut off to fp32.
inline float aligned(Products p, int bits, std::size_t chunk) {
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); i += chunk) {
    const auto part = p.subspan(i, std::min(chunk, p.size() - i));
    double largest = std::fabs(sum);
    for (const double x : part) largest = std::max(largest, std::fabs(x));
    if (largest == 0) continue;
    const double unit = std::ldexp(1.0, std::ilogb(largest) - bits);
    double total = std::trunc(sum / unit);
    for (const double x : part) total += std::trunc(x / unit);
    total *= unit;
    float cut = static_cast<float>(total);
    if (std::fabs(static_cast<double>(cut)) > std::fabs(total)) cut = std::nextafterf(cut, 0);
    sum = static_cast<double>(cut);
  }
  return static_cast<float>(sum);
}

// fp16 sums, the products first brought into its range by a power of two.
inline float fp16(Products p) {
  double size = 0;
  for (const double x : p) size += std::fabs(x);
  if (size == 0) return 0;
  const double scale = std::exp2(std::floor(std::log2(30000 / size)));
  float sum = 0;
  for (const double x : p)
    sum = f16_value(f16_encode(static_cast<float>(static_cast<double>(sum) + x * scale)));
  return static_cast<float>(static_cast<double>(sum) / scale);
}

struct Named {
  std::string name;
  Order order;
};

inline std::vector<Named> honest_orders() {
  std::vector<Named> orders{{"sequential", sequential},
                            {"reversed", reversed},
                            {"tree", tree},
                            {"split_8", split_8},
                            {"blocked_16", blocked_16}};
  for (const int bits : {24, 25}) {
    for (const std::size_t chunk : {8, 16, 32}) {
      orders.push_back({"aligned_" + std::to_string(bits) + "_by_" + std::to_string(chunk),
                        [bits, chunk](Products p) { return aligned(p, bits, chunk); }});
    }
  }
  return orders;
}

}  // namespace nibble::accumulate
