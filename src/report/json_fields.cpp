// SPDX-License-Identifier: Apache-2.0
#include "report/json_fields.h"

#include <set>

namespace nibble {
namespace {

// Walks the text before any tree is built, so that hostile nesting costs nothing.
class JsonGuard : public nlohmann::json_sax<Json> {
 public:
  explicit JsonGuard(int max_depth) : max_depth_(max_depth) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }

  bool start_object(std::size_t) override { return enter(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }

  bool key(string_t& key) override {
    if (keys_.back().insert(key).second) return true;
    trouble_ = "key '" + key.substr(0, 64) + "' appears twice";
    return false;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    trouble_ = error.id == 406 ? "a number is out of range"
                               : "syntax error at byte " + std::to_string(position);
    return false;
  }

  const std::string& trouble() const { return trouble_; }

 private:
  bool enter() {
    keys_.emplace_back();
    if (static_cast<int>(keys_.size()) <= max_depth_) return true;
    trouble_ = "nesting deeper than " + std::to_string(max_depth_);
    return false;
  }
  bool leave() {
    keys_.pop_back();
    return true;
  }

  int max_depth_;
  std::vector<std::set<std::string>> keys_;
  std::string trouble_;
};

}  // namespace

Result<Json> parse_json(std::string_view text, std::size_t max_bytes, int max_depth) {
  if (text.size() > max_bytes)
    return fail(ErrorKind::corrupt, "JSON: " + std::to_string(text.size()) +
                                        " bytes, more than the limit of " +
                                        std::to_string(max_bytes));
  JsonGuard guard(max_depth);
  if (!Json::sax_parse(text, &guard)) return fail(ErrorKind::corrupt, "JSON: " + guard.trouble());
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return fail(ErrorKind::corrupt, "JSON: syntax error");
  return json;
}

}  // namespace nibble
