// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/check_config.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <functional>
#include <memory>

#include "checkpoint/block_weights.h"
#include "checkpoint/parse_json.h"
#include "checkpoint/untrusted_text.h"

namespace nibble {
namespace {

using Json = nlohmann::json;
using Matcher = std::function<bool(const std::string& module)>;

constexpr std::size_t kConfigLevels = 32;
constexpr std::size_t kLongestPattern = 1000;

bool matches_wildcard(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// "lm_head", "model.layers.0.mlp*", "re:.*gate$".
Result<Matcher> make_matcher(const std::string& pattern, const std::string& label) {
  if (pattern.size() > kLongestPattern)
    return fail(ErrorKind::corrupt, label + ": an exclusion is longer than 1000 bytes");
  if (!pattern.starts_with("re:")) {
    return [pattern](const std::string& module) {
      return matches_wildcard(pattern, module) || module.starts_with(pattern + ".");
    };
  }
  // RE2, since a stranger's pattern must cost neither exponential time nor more memory than this.
  RE2::Options options(RE2::Quiet);
  options.set_max_mem(1 << 20);
  auto expression = std::make_shared<const RE2>(pattern.substr(3), options);
  if (!expression->ok()) {
    return fail(ErrorKind::corrupt, fmt::format("{}: exclusion '{}' is no regular expression: {}",
                                                label, shown(pattern), shown(expression->error())));
  }
  // From the start of the name, as Python's re.match.
  return [expression](const std::string& module) {
    return expression->Match(module, 0, module.size(), RE2::ANCHOR_START, nullptr, 0);
  };
}

// The object that holds the exclusions, wherever the two producers put it.
const Json* find_settings(const Json& config) {
  for (const char* key : {"quantization_config", "quantization"}) {
    if (config.is_object() && config.contains(key) && config[key].is_object()) return &config[key];
  }
  return nullptr;
}

Result<std::vector<Matcher>> read_exclusions(const Json& settings, const std::string& label) {
  std::vector<Matcher> matchers;
  for (const char* key : {"ignore", "exclude_modules"}) {
    if (!settings.contains(key) || settings[key].is_null()) continue;
    if (!settings[key].is_array())
      return fail(ErrorKind::corrupt, fmt::format("{}: '{}' is no list", label, key));
    for (const auto& pattern : settings[key]) {
      if (!pattern.is_string())
        return fail(ErrorKind::corrupt, fmt::format("{}: '{}' holds more than texts", label, key));
      auto matcher = make_matcher(pattern.get<std::string>(), label);
      if (!matcher) return tl::unexpected(matcher.error());
      matchers.push_back(std::move(*matcher));
    }
  }
  return matchers;
}

std::string module_of(const std::string& tensor) {
  const auto dot = tensor.rfind('.');
  return dot == std::string::npos ? tensor : tensor.substr(0, dot);
}

bool is_plain_weight(const std::string& name, const StoredTensor& tensor) {
  const bool wide = tensor.type == StoredType::bf16 || tensor.type == StoredType::f16 ||
                    tensor.type == StoredType::f32;
  return wide && tensor.shape.size() == 2 && name.ends_with(".weight") &&
         name.find("embed") == std::string::npos;
}

}  // namespace

Result<std::vector<std::string>> check_against_config(const Checkpoint& checkpoint,
                                                      std::string_view config,
                                                      const std::string& label) {
  const auto json = parse_untrusted_json(config, label, kConfigLevels);
  if (!json) return tl::unexpected(json.error());
  const Json* settings = find_settings(*json);
  if (!settings)
    return fail(ErrorKind::corrupt, label + ": no object 'quantization_config' or 'quantization'");
  const auto exclusions = read_exclusions(*settings, label);
  if (!exclusions) return tl::unexpected(exclusions.error());
  const auto is_excluded = [&](const std::string& module) {
    for (const auto& matches : *exclusions) {
      if (matches(module)) return true;
    }
    return false;
  };
  std::vector<std::string> contradictions;
  for (const auto& name : list_block_weights(checkpoint)) {
    if (is_excluded(module_of(name))) {
      contradictions.push_back(fmt::format("{} excludes '{}', but its 4-bit codes '{}' are there",
                                           label, module_of(name), name));
    }
  }
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (is_plain_weight(name, tensor) && !is_excluded(module_of(name))) {
      contradictions.push_back(fmt::format("{} does not exclude '{}', but its weight is {}", label,
                                           module_of(name), nibble::name(tensor.type)));
    }
  }
  return contradictions;
}

}  // namespace nibble
