// SPDX-License-Identifier: Apache-2.0
#include "probe/make_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>

namespace nibble {
namespace {

constexpr GemmShape kDefaultShape{128, 256, 256};
// No multiple of any tile in m and n; the first that a backend supports. Scale layouts have pads.
constexpr std::array kRaggedShapes{GemmShape{31, 161, 224}, GemmShape{31, 161, 192},
                                   GemmShape{31, 192, 192}};
// GLM-5: hidden 6144, expert width 2048. Gate and up of one expert, one token; down, sixteen
// tokens.
constexpr std::array kModelShapes{GemmShape{1, 4096, 6144}, GemmShape{16, 6144, 2048}};
constexpr std::array<std::int64_t, 2> kWeightsM{1, 16};
constexpr std::array kWeightsExperiments{Experiment::random, Experiment::pads, Experiment::canary,
                                         Experiment::repeat};

template <class T>
bool contains(const std::vector<T>& list, const T& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

template <class T>
const std::vector<T>& chosen(const std::vector<T>& requested, const std::vector<T>& offered) {
  return requested.empty() ? offered : requested;
}

struct Layouts {
  ScaleOrder a, b;
};

// What one backend is asked with one kind of operands.
struct Kind {
  const Backend& backend;
  const Contract& contract;
  const ProbeRequest& request;
  Activation a;
  Format b;
};

// Pairs of one order: whoever mixes layouts asks for it with flags.
std::vector<Layouts> layouts_of(const Kind& kind) {
  const bool blocks = is_block_format(kind.a);
  const auto& a_orders = chosen(kind.request.a_scales, kind.contract.a_scales);
  const bool given = !kind.request.a_scales.empty() && !kind.request.b_scales.empty();
  std::vector<Layouts> layouts;
  for (const ScaleOrder b : chosen(kind.request.b_scales, kind.contract.b_scales)) {
    if (!blocks) {
      layouts.push_back({ScaleOrder::row_major, b});
      continue;
    }
    for (const ScaleOrder a : a_orders) {
      if (given || a == b || !contains(a_orders, b)) layouts.push_back({a, b});
    }
  }
  if (layouts.empty()) layouts.push_back({ScaleOrder::row_major, ScaleOrder::row_major});
  return layouts;
}

// f32 shows the smallest errors, bf16 the least.
OutType sharpest(const std::vector<OutType>& outs) {
  for (const OutType out : {OutType::f32, OutType::f16}) {
    if (contains(outs, out)) return out;
  }
  return OutType::bf16;
}

bool runs_every_layout(Experiment experiment) {
  return experiment == Experiment::integer || experiment == Experiment::random ||
         experiment == Experiment::locate || experiment == Experiment::pads;
}

bool runs_every_out(Experiment experiment) {
  return experiment == Experiment::integer || experiment == Experiment::random ||
         experiment == Experiment::canary;
}

class Planner {
 public:
  Planner(const Kind& kind, const CpuInfo& cpu) : kind_(kind), cpu_(cpu) {}

  std::vector<Case> plan() {
    for (const Experiment experiment : experiments()) {
      for (const GemmShape& shape : shapes_of(experiment)) add_shape(experiment, shape);
    }
    return kept();
  }

 private:
  std::vector<Experiment> experiments() const {
    const auto& request = kind_.request;
    if (!request.experiments.empty()) return request.experiments;
    if (request.weights) return {kWeightsExperiments.begin(), kWeightsExperiments.end()};
    std::vector<Experiment> all;
    for (const auto& entry : EnumNames<Experiment>::table) all.push_back(entry.first);
    return all;
  }

  std::vector<GemmShape> shapes_of(Experiment experiment) const {
    const auto& request = kind_.request;
    if (request.weights) return weights_shapes(experiment);
    if (!request.shapes.empty()) {
      // `edges` takes sizes of its own.
      if (experiment == Experiment::edges) return {request.shapes.front()};
      return request.shapes;
    }
    std::vector<GemmShape> shapes{kDefaultShape};
    if (experiment == Experiment::locate || experiment == Experiment::pads ||
        experiment == Experiment::random) {
      const auto ragged =
          std::find_if(kRaggedShapes.begin(), kRaggedShapes.end(),
                       [this](const GemmShape& shape) { return is_supported(problem(shape)); });
      if (ragged != kRaggedShapes.end()) shapes.push_back(*ragged);
    }
    if (experiment == Experiment::random)
      shapes.insert(shapes.end(), kModelShapes.begin(), kModelShapes.end());
    return shapes;
  }

  std::vector<GemmShape> weights_shapes(Experiment experiment) const {
    const auto& request = kind_.request;
    std::vector<std::int64_t> sizes = request.weights_m;
    if (sizes.empty() && experiment == Experiment::random)
      sizes = {kWeightsM.begin(), kWeightsM.end()};
    if (sizes.empty()) sizes = {kWeightsM.back()};
    std::vector<GemmShape> shapes;
    for (const std::int64_t m : sizes)
      shapes.push_back({m, request.weights->rows, request.weights->columns});
    return shapes;
  }

  GemmProblem problem(const GemmShape& shape) const {
    GemmProblem result;
    result.shape = shape;
    result.a = kind_.a;
    result.b = kind_.b;
    const auto& outs = kind_.contract.outs;
    result.out = kind_.request.outs.empty() ? sharpest(outs) : kind_.request.outs.front();
    const Layouts layouts = layouts_of(kind_).front();
    result.a_scales = layouts.a;
    result.b_scales = layouts.b;
    if (kind_.request.weights)
      result.source = kind_.request.weights_file + ":" + kind_.request.tensor;
    return result;
  }

  bool is_supported(const GemmProblem& problem) const {
    return std::holds_alternative<Supported>(kind_.backend.supports(problem, cpu_));
  }

  // Every output type in the first layout, every layout with the sharpest type; where flags name
  // types or layouts, all combinations of them.
  void add_shape(Experiment experiment, const GemmShape& shape) {
    const auto& request = kind_.request;
    const bool model =
        std::find(kModelShapes.begin(), kModelShapes.end(), shape) != kModelShapes.end() &&
        request.shapes.empty();
    const auto layouts = layouts_of(kind_);
    const bool layouts_given = !request.a_scales.empty() || !request.b_scales.empty();
    const bool outs_given = !request.outs.empty();
    const OutType sharp = sharpest(chosen(request.outs, kind_.contract.outs));
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      if (i > 0 && !layouts_given && (!runs_every_layout(experiment) || model)) break;
      for (const OutType out : chosen(request.outs, kind_.contract.outs)) {
        const bool every_out = outs_given || (runs_every_out(experiment) && !model && i == 0);
        if (!every_out && out != sharp) continue;
        GemmProblem each = problem(shape);
        each.a_scales = layouts[i].a;
        each.b_scales = layouts[i].b;
        each.out = out;
        add(experiment, each);
      }
    }
  }

  void add(Experiment experiment, const GemmProblem& problem) {
    const auto& request = kind_.request;
    Case the_case;
    the_case.backend = kind_.backend.name();
    the_case.problem = problem;
    the_case.experiment = experiment;
    the_case.seed = request.seed;
    the_case.accept = request.accept;
    the_case.limit_s = request.limit_s;
    the_case.memory_limit_bytes = request.memory_limit_bytes;
    the_case.weights_file = request.weights_file;
    the_case.tensor = request.tensor;
    the_case.declared_scales = request.declared_scales;
    the_case.threads = request.threads;
    if (std::find(cases_.begin(), cases_.end(), the_case) == cases_.end())
      cases_.push_back(std::move(the_case));
  }

  // One row says that a kind, or a shape that flags ask for, is not served; dozens would drown it.
  std::vector<Case> kept() const {
    std::vector<Case> kept;
    std::vector<GemmShape> refused;
    for (const Case& each : cases_) {
      if (is_supported(each.problem)) {
        kept.push_back(each);
      } else if (!kind_.request.shapes.empty() && !contains(refused, each.problem.shape)) {
        refused.push_back(each.problem.shape);
        kept.push_back(each);
      }
    }
    if (kept.empty() && !cases_.empty()) kept.push_back(cases_.front());
    return kept;
  }

  const Kind& kind_;
  const CpuInfo& cpu_;
  std::vector<Case> cases_;
};

// Operands of two different block formats only where flags name both.
bool is_wanted(const ProbeRequest& request, Activation a, Format b) {
  if (!is_block_format(a) || a == activation_of(b)) return true;
  return !request.activations.empty() && !request.formats.empty();
}

void plan_backend(const ProbeRequest& request, const Backend& backend, const CpuInfo& cpu,
                  std::vector<Case>& cases) {
  const Contract contract = backend.contract();
  std::vector<Format> formats = chosen(request.formats, contract.formats);
  if (request.weights) formats = {request.weights->format};
  for (const Format b : formats) {
    for (const Activation a : chosen(request.activations, contract.activations)) {
      if (!is_wanted(request, a, b)) continue;
      const Kind kind{backend, contract, request, a, b};
      const auto planned = Planner(kind, cpu).plan();
      cases.insert(cases.end(), planned.begin(), planned.end());
    }
  }
}

Result<std::vector<const Backend*>> chosen_backends(const ProbeRequest& request,
                                                    std::span<const Backend* const> backends) {
  if (request.backends.empty())
    return std::vector<const Backend*>(backends.begin(), backends.end());
  std::vector<const Backend*> result;
  std::string known;
  for (const Backend* each : backends)
    known += (known.empty() ? "" : ", ") + std::string(each->name());
  for (const std::string& wanted : request.backends) {
    const auto found = std::find_if(backends.begin(), backends.end(),
                                    [&](const Backend* each) { return each->name() == wanted; });
    if (found == backends.end()) {
      return fail(ErrorKind::invalid_argument,
                  fmt::format("--backend: '{}' is not one of {}", wanted, known));
    }
    if (!contains(result, *found)) result.push_back(*found);
  }
  return result;
}

Status check_request(const ProbeRequest& request) {
  if (!request.weights) return {};
  for (const Experiment each : request.experiments) {
    if (std::find(kWeightsExperiments.begin(), kWeightsExperiments.end(), each) ==
        kWeightsExperiments.end()) {
      return fail(
          ErrorKind::invalid_argument,
          fmt::format("--experiment: '{}' makes its own B; with --weights there are random, "
                      "pads, canary, repeat",
                      name(each)));
    }
  }
  for (const Format each : request.formats) {
    if (each != request.weights->format) {
      return fail(ErrorKind::invalid_argument,
                  fmt::format("--b: '{}', but {} of {} is {}", name(each), request.tensor,
                              request.weights_file, name(request.weights->format)));
    }
  }
  return {};
}

Status apply_filter(const std::string& filter, std::vector<Case>& cases) {
  if (filter.empty()) return {};
  try {
    const std::regex pattern(filter);
    std::erase_if(cases, [&pattern](const Case& each) {
      return !std::regex_search(case_name(each), pattern);
    });
  } catch (const std::regex_error& error) {
    return fail(ErrorKind::invalid_argument,
                fmt::format("--filter: '{}' is no regular expression: {}", filter, error.what()));
  }
  return {};
}

}  // namespace

Result<std::vector<Case>> make_cases(const ProbeRequest& request,
                                     std::span<const Backend* const> backends, const CpuInfo& cpu) {
  if (auto ok = check_request(request); !ok) return tl::unexpected(ok.error());
  const auto wanted = chosen_backends(request, backends);
  if (!wanted) return tl::unexpected(wanted.error());
  std::vector<Case> cases;
  for (const Backend* backend : *wanted) plan_backend(request, *backend, cpu, cases);
  if (auto ok = apply_filter(request.filter, cases); !ok) return tl::unexpected(ok.error());
  return cases;
}

}  // namespace nibble
