// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/parse_json.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "checkpoint/untrusted_text.h"

namespace nibble {
namespace {

using Json = nlohmann::json;

// A value takes up to 25 times its text in memory: this keeps a tree below some hundred megabytes.
constexpr std::size_t kMostValues = std::size_t{1} << 22;

// Looks at the events alone: what it lets pass is no deeper than the limit and says nothing twice,
// so that the tree can be built safely afterwards.
class Inspector : public nlohmann::json_sax<Json> {
 public:
  explicit Inspector(std::size_t most_levels) : most_levels_(most_levels) {}

  const std::string& trouble() const { return trouble_; }

  bool null() override { return count(); }
  bool boolean(bool) override { return count(); }
  bool number_integer(number_integer_t) override { return count(); }
  bool number_unsigned(number_unsigned_t) override { return count(); }
  bool number_float(number_float_t, const string_t&) override { return count(); }
  bool string(string_t&) override { return count(); }
  bool binary(binary_t&) override { return count(); }
  bool start_object(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_array() override { return leave(); }

  bool key(string_t& key) override {
    if (keys_.back().insert(key).second) return true;
    trouble_ = fmt::format("key '{}' stands twice in one object", shown(key));
    return false;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    trouble_ = fmt::format("no JSON at byte {}", position);
    return false;
  }

 private:
  bool count() {
    if (++values_ <= kMostValues) return true;
    trouble_ = fmt::format("more than {} values", kMostValues);
    return false;
  }

  bool enter() {
    if (keys_.size() == most_levels_) {
      trouble_ = fmt::format("nested deeper than {} levels", most_levels_);
      return false;
    }
    keys_.emplace_back();
    return count();
  }

  bool leave() {
    keys_.pop_back();
    return true;
  }

  std::size_t most_levels_, values_ = 0;
  std::vector<std::set<std::string>> keys_;
  std::string trouble_;
};

}  // namespace

Result<Json> parse_untrusted_json(std::string_view text, const std::string& label,
                                  std::size_t most_levels) {
  Inspector inspector(most_levels);
  if (!Json::sax_parse(text.begin(), text.end(), &inspector)) {
    return fail(ErrorKind::corrupt, fmt::format("{}: {}", label, inspector.trouble()));
  }
  return Json::parse(text.begin(), text.end());
}

}  // namespace nibble
