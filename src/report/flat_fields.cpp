// SPDX-License-Identifier: Apache-2.0
#include "report/flat_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <variant>

#include "report/fields.h"
#include "report/text.h"

namespace nibble {
namespace {

std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(int value) { return fmt::format("{}", value); }
std::string text_of(std::int64_t value) { return fmt::format("{}", value); }
std::string text_of(std::uint64_t value) { return fmt::format("{}", value); }
std::string text_of(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }
std::string text_of(const std::string& value) { return sanitize(value); }
std::string text_of(std::monostate) { return ""; }

template <HasNames E>
std::string text_of(E value) {
  return std::string(name(value));
}

template <class List>
std::string joined(const List& values) {
  std::string text;
  for (const auto& value : values) {
    if (!text.empty()) text += ';';
    text += text_of(value);
  }
  return text;
}

std::string text_of(const std::array<std::int64_t, kUlpBins>& bins) { return joined(bins); }
std::string text_of(const std::vector<std::string>& values) { return joined(values); }

// `null`: the keys of a struct that is absent, all with empty texts.
class Flattener {
 public:
  Flattener(std::vector<FlatField>& fields, std::string prefix, bool null)
      : fields_(fields), prefix_(std::move(prefix)), null_(null) {}

  template <class T>
  void operator()(const char* key, const T& value) {
    add(key, value, null_);
  }

 private:
  template <class T>
  void add(const char* key, const T& value, bool null) {
    if constexpr (HasFields<T>)
      visit_fields(value, Flattener(fields_, prefix_ + key + ".", null));
    else
      fields_.push_back({prefix_ + key, null ? std::string() : text_of(value)});
  }

  template <class T>
  void add(const char* key, const std::optional<T>& value, bool null) {
    add(key, value.value_or(T{}), null || !value);
  }

  std::vector<FlatField>& fields_;
  std::string prefix_;
  bool null_;
};

}  // namespace

std::vector<FlatField> flat_fields(const Outcome& outcome) {
  std::vector<FlatField> fields;
  const OutcomeRecord record = to_record(outcome);
  visit_fields(record, Flattener(fields, "", false));
  return fields;
}

}  // namespace nibble
