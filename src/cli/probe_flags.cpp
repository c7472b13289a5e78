// SPDX-License-Identifier: Apache-2.0
#include "cli/probe_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <limits>

#include "cli/choice_flag.h"
#include "cli/help_format.h"
#include "probe/load_weights.h"

namespace nibble {
namespace {

constexpr int kMebibyteBits = 20;
constexpr double kMaxLimitS = 1e6;

AccumulationClass class_of(AcceptClass accept) {
  switch (accept) {
    case AcceptClass::exact:
      return AccumulationClass::exact;
    case AcceptClass::fp32:
      return AccumulationClass::fp32;
    case AcceptClass::reduced:
      return AccumulationClass::reduced;
  }
  return AccumulationClass::fp32;
}

// The parser's own conversion takes -1 for the largest seed.
std::string seed_trouble(const std::string& text) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error == std::errc() && end == text.data() + text.size()) return "";
  return fmt::format("'{}' is no integer from 0 to {}", text,
                     std::numeric_limits<std::uint64_t>::max());
}

tl::unexpected<Error> usage(const std::string& message) {
  return fail(ErrorKind::invalid_argument, message);
}

Status take_shapes(const ProbeFlags& flags, ProbeRequest& request) {
  const bool weights = !request.weights_file.empty();
  for (const std::string& text : flags.shapes) {
    if (weights) {
      const auto sizes = parse_sizes(text);
      if (!sizes)
        return usage("--shape: with --weights it holds m alone: " + sizes.error().message);
      request.weights_m.insert(request.weights_m.end(), sizes->begin(), sizes->end());
    } else {
      const auto shapes = parse_shapes(text);
      if (!shapes) return usage("--shape: " + shapes.error().message);
      request.shapes.insert(request.shapes.end(), shapes->begin(), shapes->end());
    }
  }
  return {};
}

Status take_weights(const ProbeFlags& flags, ProbeRequest& request) {
  if (request.weights_file.empty() != request.tensor.empty())
    return usage("--weights and --tensor go together: a file and the name of a tensor in it");
  if (!flags.declared_scales.empty()) request.declared_scales = flags.declared_scales.back();
  if (request.weights_file.empty()) {
    if (request.declared_scales) return usage("--scales: there is no --weights that it describes");
    return {};
  }
  const auto info =
      read_weights_info(request.weights_file, request.tensor, request.declared_scales);
  if (!info) return tl::unexpected(info.error());
  request.weights = *info;
  return {};
}

}  // namespace

void add_probe_flags(CLI::App& app, ProbeFlags& flags) {
  ProbeRequest& request = flags.request;
  app.add_option("--backend", request.backends, "implementations, as `nibble list` names them")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_choice_flag(app, "--experiment", request.experiments,
                  "what to try, as `nibble list` names it");
  app.add_option("--shape", flags.shapes, "MxNxK; lists 1,16,64 and ranges 1-4096*2 in each")
      ->type_name("MxNxK")
      ->allow_extra_args(false);
  add_choice_flag(app, "--a", request.activations, "activations");
  add_choice_flag(app, "--b", request.formats, "format of the weights");
  add_choice_flag(app, "--out", request.outs, "output types");
  add_choice_flag(app, "--a-scales", request.a_scales, "scale layouts of A");
  add_choice_flag(app, "--b-scales", request.b_scales, "scale layouts of B");
  app.add_option("--weights", request.weights_file, "safetensors or GGUF file with B")
      ->type_name("FILE");
  app.add_option("--tensor", request.tensor, "the codes tensor in it, or its module")
      ->type_name("NAME");
  add_choice_flag(app, "--scales", flags.declared_scales, "how the file's scales lie");
  app.add_option("--seed", request.seed, "of generated operands; default 1")
      ->type_name("N")
      ->check(seed_trouble);
  add_choice_flag(app, "--accept", flags.accept, "the worst accumulation that is still correct");
  app.add_option("--timeout", request.limit_s, "seconds for one case; default 120")
      ->type_name("SECONDS");
  app.add_option("--memory-limit-mib", flags.memory_limit_mib,
                 "memory of a child; default: as much as there is")
      ->type_name("MIB");
  app.add_option("--threads", request.threads, "of a backend; default: all")->type_name("N");
  add_choice_flag(app, "--isolate", flags.isolate, "a child process for each");
  app.add_option("--filter", request.filter, "only cases whose name matches; see --dry-run")
      ->type_name("REGEX");
  app.add_flag("--dry-run", flags.dry_run, "print the names of the cases and run none");
  add_output_flags(app, flags.output);
  leave_to_help_all(app, {"--a-scales", "--b-scales", "--scales", "--memory-limit-mib", "--threads",
                          "--isolate"});
}

Result<ProbeRequest> to_request(const ProbeFlags& flags) {
  ProbeRequest request = flags.request;
  request.accept = class_of(flags.accept);
  if (!(request.limit_s > 0 && request.limit_s <= kMaxLimitS))
    return usage(fmt::format("--timeout: {} is no number of seconds above 0", request.limit_s));
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() >> kMebibyteBits;
  if (flags.memory_limit_mib < 0 || flags.memory_limit_mib > most)
    return usage(fmt::format("--memory-limit-mib: {} is out of range", flags.memory_limit_mib));
  request.memory_limit_bytes = flags.memory_limit_mib << kMebibyteBits;
  if (request.threads < 0) return usage("--threads: a number of threads is not negative");
  if (auto ok = take_shapes(flags, request); !ok) return tl::unexpected(ok.error());
  if (auto ok = take_weights(flags, request); !ok) return tl::unexpected(ok.error());
  return request;
}

}  // namespace nibble
