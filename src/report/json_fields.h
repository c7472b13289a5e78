// SPDX-License-Identifier: Apache-2.0
// The field lists as JSON, both ways. Only .cpp files include it: nlohmann is slow to compile.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "report/fields.h"

namespace nibble {

using Json = nlohmann::ordered_json;

// ---- Writing. A double that is no number becomes null.

inline Json json_of(bool value) { return value; }
inline Json json_of(int value) { return value; }
inline Json json_of(std::int64_t value) { return value; }
inline Json json_of(std::uint64_t value) { return value; }
inline Json json_of(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
inline Json json_of(const std::string& value) { return value; }
inline Json json_of(std::monostate) { return nullptr; }

template <HasNames E>
Json json_of(E value) {
  return std::string(name(value));
}

inline Json json_of(const std::array<std::int64_t, kUlpBins>& histogram) {
  Json object = Json::object();
  for (std::size_t bin = 0; bin < histogram.size(); ++bin)
    object[kUlpBinNames[bin]] = histogram[bin];
  return object;
}

template <HasFields T>
Json json_of(const T& value);

template <class T>
Json json_of(const std::optional<T>& value) {
  return value ? json_of(*value) : Json(nullptr);
}

template <class T>
Json json_of(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(json_of(value));
  return list;
}

template <HasFields T>
Json json_of(const T& value) {
  Json object = Json::object();
  visit_fields(value,
               [&object](const char* key, const auto& member) { object[key] = json_of(member); });
  return object;
}

// ASCII only, so that no control character reaches a terminal; bytes that are not UTF-8 become
// U+FFFD. `indent` -1: one line.
inline std::string dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', true, Json::error_handler_t::replace);
}

// ---- Reading. Nothing is trusted; the first trouble is kept, and names its key ("accuracy.gain").

template <class T>
inline constexpr bool kMayBeAbsent = std::same_as<T, std::monostate>;
template <class T>
inline constexpr bool kMayBeAbsent<std::optional<T>> = true;

class JsonReader {
 public:
  template <HasFields T>
  Status read(const Json& json, T& value) {
    read_value(json, "", value);
    if (error_.empty()) return {};
    return fail(ErrorKind::corrupt, error_);
  }

 private:
  void wrong(const std::string& path, const std::string& trouble) {
    if (error_.empty())
      error_ = path.empty() ? "JSON: " + trouble : "JSON: key '" + path + "' " + trouble;
  }

  void wrong_type(const std::string& path, const char* wanted, const Json& json) {
    wrong(path, std::string("must be ") + wanted + ", not " + json.type_name());
  }

  void read_value(const Json& json, const std::string& path, bool& value) {
    if (!json.is_boolean()) return wrong_type(path, "a boolean", json);
    value = json.get<bool>();
  }

  // No field of a report is a negative integer.
  template <std::integral I>
  void read_value(const Json& json, const std::string& path, I& value) {
    if (!json.is_number_integer()) return wrong_type(path, "an integer", json);
    const bool negative = !json.is_number_unsigned() && json.get<std::int64_t>() < 0;
    if (negative || !std::in_range<I>(json.get<std::uint64_t>()))
      return wrong(path, "is out of range: " + json.dump());
    value = static_cast<I>(json.get<std::uint64_t>());
  }

  void read_value(const Json& json, const std::string& path, double& value) {
    if (json.is_null())
      value = std::numeric_limits<double>::quiet_NaN();
    else if (json.is_number())
      value = json.get<double>();
    else
      wrong_type(path, "a number or null", json);
  }

  void read_value(const Json& json, const std::string& path, std::string& value) {
    if (!json.is_string()) return wrong_type(path, "a string", json);
    value = json.get_ref<const std::string&>();
  }

  void read_value(const Json& json, const std::string& path, std::monostate&) {
    if (!json.is_null()) wrong_type(path, "null", json);
  }

  template <HasNames E>
  void read_value(const Json& json, const std::string& path, E& value) {
    if (!json.is_string()) return wrong_type(path, "a string", json);
    const auto parsed = parse_enum<E>(json.get_ref<const std::string&>());
    if (!parsed) return wrong(path, "must be one of " + all_names<E>());
    value = *parsed;
  }

  void read_value(const Json& json, const std::string& path,
                  std::array<std::int64_t, kUlpBins>& histogram) {
    if (!json.is_object()) return wrong_type(path, "an object", json);
    for (std::size_t bin = 0; bin < histogram.size(); ++bin)
      read_member(json, path, kUlpBinNames[bin], histogram[bin]);
    if (json.size() > histogram.size()) wrong(path, "has a bin that is unknown");
  }

  template <class T>
  void read_value(const Json& json, const std::string& path, std::optional<T>& value) {
    if (json.is_null()) return value.reset();
    read_value(json, path, value.emplace());
  }

  template <class T>
  void read_value(const Json& json, const std::string& path, std::vector<T>& values) {
    if (!json.is_array()) return wrong_type(path, "an array", json);
    for (const Json& element : json) {
      const std::string index = "[" + std::to_string(values.size()) + "]";
      read_value(element, path + index, values.emplace_back());
      if (!error_.empty()) return;
    }
  }

  template <HasFields T>
  void read_value(const Json& json, const std::string& path, T& value) {
    if (!json.is_object()) return wrong_type(path, "an object", json);
    std::vector<std::string_view> known;
    visit_fields(value, [&](const char* key, auto& member) {
      known.push_back(key);
      read_member(json, path, key, member);
    });
    for (const auto& [key, unused] : json.items()) {
      if (std::find(known.begin(), known.end(), key) == known.end())
        wrong(join(path, key.substr(0, 64)), "is unknown");
    }
  }

  template <class T>
  void read_member(const Json& object, const std::string& path, const char* key, T& member) {
    const auto found = object.find(key);
    if (found != object.end())
      read_value(*found, join(path, key), member);
    else if constexpr (!kMayBeAbsent<T>)
      wrong(join(path, key), "is missing");
  }

  static std::string join(const std::string& path, const std::string& key) {
    return path.empty() ? key : path + "." + key;
  }

  std::string error_;
};

// The text as JSON. Errors (corrupt): more than `max_bytes`, nesting deeper than `max_depth`, a key
// twice in one object, what the grammar or the range of double forbids.
Result<Json> parse_json(std::string_view text, std::size_t max_bytes, int max_depth);

}  // namespace nibble
