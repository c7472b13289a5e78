// SPDX-License-Identifier: Apache-2.0
#include "probe/case.h"

#include <fmt/format.h>

#include <cmath>

#include "report/json_fields.h"

namespace nibble {

template <MaybeConst<Case> T, class F>
void visit_fields(T& the_case, F&& field) {
  field("backend", the_case.backend);
  field("problem", the_case.problem);
  field("experiment", the_case.experiment);
  field("seed", the_case.seed);
  field("accept", the_case.accept);
  field("limit_s", the_case.limit_s);
  field("memory_limit_bytes", the_case.memory_limit_bytes);
  field("weights_file", the_case.weights_file);
  field("tensor", the_case.tensor);
  field("declared_scales", the_case.declared_scales);
  field("threads", the_case.threads);
}

namespace {

constexpr std::size_t kMaxCaseBytes = std::size_t{1} << 20;
constexpr int kMaxCaseDepth = 3;

Status check_values(const Case& the_case) {
  const auto corrupt = [](const char* key, const char* must) {
    return fail(ErrorKind::corrupt, fmt::format("JSON: key '{}' must be {}", key, must));
  };
  if (the_case.problem.groups < 1) return corrupt("problem.groups", "at least 1");
  if (!std::isfinite(the_case.limit_s) || the_case.limit_s <= 0)
    return corrupt("limit_s", "a number above 0");
  if (the_case.accept == AccumulationClass::none)
    return corrupt("accept", "exact, fp32 or reduced");
  if (the_case.weights_file.empty() != the_case.tensor.empty())
    return corrupt("tensor", "given exactly where weights_file is");
  return {};
}

// As it is where a shell reads it as one word, else in single quotes.
std::string quoted(const std::string& word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./:,=+@%").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string result = "'";
  for (const char c : word) {
    if (c == '\'')
      result += "'\\''";
    else
      result += c;
  }
  return result + "'";
}

}  // namespace

std::string case_name(const Case& the_case) {
  const auto& p = the_case.problem;
  std::string text =
      fmt::format("{}/{}/{}x{}/{}x{}x{}/{}", the_case.backend, name(the_case.experiment), name(p.a),
                  name(p.b), p.shape.m, p.shape.n, p.shape.k, name(p.out));
  if (p.a_scales != ScaleOrder::row_major || p.b_scales != ScaleOrder::row_major)
    text += fmt::format("/{}+{}", name(p.a_scales), name(p.b_scales));
  if (!p.source.empty()) text += "/" + p.source;
  return text;
}

std::string case_to_json(const Case& the_case) { return dump(json_of(the_case)); }

Result<Case> case_from_json(std::string_view text) {
  const auto json = parse_json(text, kMaxCaseBytes, kMaxCaseDepth);
  if (!json) return tl::unexpected(json.error());
  Case the_case;
  if (auto status = JsonReader().read(*json, the_case); !status)
    return tl::unexpected(status.error());
  if (auto status = check_values(the_case); !status) return tl::unexpected(status.error());
  return the_case;
}

std::string rerun_command(const Case& the_case) {
  const auto& p = the_case.problem;
  std::string line = fmt::format("nibble probe --backend {} --experiment {}",
                                 quoted(the_case.backend), name(the_case.experiment));
  if (the_case.weights_file.empty()) {
    line += fmt::format(" --shape {}x{}x{} --a {} --b {}", p.shape.m, p.shape.n, p.shape.k,
                        name(p.a), name(p.b));
  } else {
    line += fmt::format(" --weights {} --tensor {}", quoted(the_case.weights_file),
                        quoted(the_case.tensor));
    if (the_case.declared_scales)
      line += fmt::format(" --scales {}", name(*the_case.declared_scales));
    line += fmt::format(" --shape {} --a {}", p.shape.m, name(p.a));
  }
  line += fmt::format(" --out {}", name(p.out));
  if (is_block_format(p.a)) line += fmt::format(" --a-scales {}", name(p.a_scales));
  line += fmt::format(" --b-scales {} --seed {}", name(p.b_scales), the_case.seed);
  if (the_case.accept != AccumulationClass::fp32)
    line += fmt::format(" --accept {}", name(the_case.accept));
  if (the_case.limit_s != kDefaultLimitS) line += fmt::format(" --timeout {}", the_case.limit_s);
  if (the_case.memory_limit_bytes > 0)
    line += fmt::format(" --memory-limit-mib {}", divide_up(the_case.memory_limit_bytes, 1 << 20));
  if (the_case.threads > 0) line += fmt::format(" --threads {}", the_case.threads);
  return line;
}

}  // namespace nibble
