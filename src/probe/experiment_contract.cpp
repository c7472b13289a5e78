// SPDX-License-Identifier: Apache-2.0
// contract: alpha left out, and arguments that no launch can serve. Each is refused in words, or
// answered as the contract says; a refusal writes nothing.
#include <fmt/format.h>

#include <array>

#include "probe/experiment_run.h"

namespace nibble {
namespace {

// What a launch may be given in place of A.
struct Others {
  Operands twice_k;
  DenseTensor f32;  // of the right sizes, a kind that no problem has
};

// What a misuse may bend.
struct Arguments {
  GemmArguments launch;
  const GemmProblem& problem;
  const Others& others;
};

struct Misuse {
  const char* what;
  bool (*apply)(Arguments& arguments);  // false: this case offers no room for it
};

template <class T>
void shorten(std::span<T>& span) {
  span = span.first(span.size() - 1);
}

std::int64_t row_bytes(const GemmProblem& problem) {
  return problem.shape.n * out_bytes(problem.out);
}

bool take_other_out(Arguments& arguments) {
  arguments.launch.out = arguments.problem.out == OutType::f32 ? OutType::bf16 : OutType::f32;
  return true;
}

bool shorten_output(Arguments& arguments) {
  if (arguments.launch.output.empty()) return false;
  shorten(arguments.launch.output);
  return true;
}

bool shorten_workspace(Arguments& arguments) {
  if (arguments.launch.workspace.empty()) return false;
  shorten(arguments.launch.workspace);
  return true;
}

bool narrow_stride(Arguments& arguments) {
  if (arguments.problem.shape.m < 2 || row_bytes(arguments.problem) == 0) return false;
  arguments.launch.out_row_stride_bytes =
      row_bytes(arguments.problem) - out_bytes(arguments.problem.out);
  return true;
}

bool negate_stride(Arguments& arguments) {
  if (arguments.problem.shape.m < 2 || row_bytes(arguments.problem) == 0) return false;
  arguments.launch.out_row_stride_bytes = -row_bytes(arguments.problem);
  return true;
}

bool drop_row_of_a(Arguments& arguments) {
  if (arguments.problem.shape.m < 2) return false;
  std::visit([](auto& a) { --a.rows; }, arguments.launch.a);
  if (auto* blocks = std::get_if<BlockTensorView>(&arguments.launch.a)) --blocks->layout.rows;
  return true;
}

bool take_other_k(Arguments& arguments) {
  arguments.launch.a = arguments.others.twice_k.inputs().a;
  return true;
}

bool shorten_a(Arguments& arguments) {
  bool room = false;
  std::visit(
      [&room](auto& a) {
        if constexpr (requires { a.codes; }) {
          room = !a.codes.empty();
          if (room) shorten(a.codes);
        } else {
          room = !a.data.empty();
          if (room) shorten(a.data);
        }
      },
      arguments.launch.a);
  return room;
}

bool shorten_scales_of_a(Arguments& arguments) {
  auto* blocks = std::get_if<BlockTensorView>(&arguments.launch.a);
  if (blocks == nullptr || blocks->scales.empty()) return false;
  shorten(blocks->scales);
  return true;
}

bool take_other_kind(Arguments& arguments) {
  arguments.launch.a = arguments.others.f32.view();
  return true;
}

constexpr std::array kMisuses{Misuse{"an output type that was not prepared for", take_other_out},
                              Misuse{"an output one byte too short", shorten_output},
                              Misuse{"a workspace one byte too short", shorten_workspace},
                              Misuse{"an output stride below a row", narrow_stride},
                              Misuse{"a negative output stride", negate_stride},
                              Misuse{"A with one row fewer", drop_row_of_a},
                              Misuse{"A of twice the k", take_other_k},
                              Misuse{"A's elements one byte too short", shorten_a},
                              Misuse{"A's scales one byte too short", shorten_scales_of_a},
                              Misuse{"A of another kind", take_other_kind}};

Result<Others> make_others(const GemmProblem& problem) {
  GemmProblem twice_k = problem;
  twice_k.shape.n = 0;
  twice_k.shape.k = 2 * problem.shape.k;
  auto operands = make_zero_operands(twice_k);
  if (!operands) return tl::unexpected(operands.error());
  const auto& [m, n, k] = problem.shape;
  return Others{
      std::move(*operands),
      {DenseType::f32, m, k, std::vector<std::byte>(static_cast<std::size_t>(m * k * 4))}};
}

Finding try_misuse(Trial& trial, const Gemm& gemm, const Operands& operands, const Others& others,
                   const Misuse& misuse) {
  const std::string what = misuse.what;
  auto output = make_output(trial.contract.memory, gemm.problem, {}, 0);
  if (!output) return failed(what, "output", output.error());
  Arguments arguments{{}, gemm.problem, others};
  arguments.launch.a = operands.inputs().a;
  arguments.launch.alpha = &operands.alpha;
  arguments.launch.out = gemm.problem.out;
  arguments.launch.out_row_stride_bytes = output->row_stride_bytes;
  arguments.launch.output = output->buffer.bytes();
  auto scratch = GuardedBuffer::create(trial.contract.memory, gemm.kernel->workspace_bytes(), 0xFF);
  if (!scratch) return failed(what, "workspace", scratch.error());
  arguments.launch.workspace = scratch->bytes();
  arguments.launch.threads = trial.the_case.threads;
  if (!misuse.apply(arguments)) return std::nullopt;
  const auto status = gemm.kernel->launch(arguments.launch);
  if (status) return incorrect(what, "launch accepted it; it must be refused");
  if (status.error().message.empty()) return incorrect(what, "launch refused it without a word");
  if (const auto damage = output->damage(); !damage.empty())
    return incorrect(what, "launch refused it, yet " + damage);
  if (!output->untouched()) return incorrect(what, "launch refused it, yet wrote to the output");
  return std::nullopt;
}

// B that does not fit what was prepared: prepack must refuse.
Finding try_wrong_weights(Trial& trial, const GemmProblem& problem, const BlockTensor& b) {
  auto fewer_rows = b.view();
  --fewer_rows.rows;
  --fewer_rows.layout.rows;
  auto short_codes = b.view();
  auto short_scales = b.view();
  if (b.codes.empty() || b.scales.empty()) return std::nullopt;
  shorten(short_codes.codes);
  shorten(short_scales.scales);
  const std::pair<const char*, BlockTensorView> views[] = {
      {"B with one row fewer", fewer_rows},
      {"B's codes one byte too short", short_codes},
      {"B's scales one byte too short", short_scales}};
  for (const auto& [what, view] : views) {
    auto kernel = trial.backend.prepare(problem);
    if (!kernel) return failed(what, "prepare", kernel.error());
    const auto status = (*kernel)->prepack(view);
    if (status) return incorrect(what, "prepack accepted it; it must be refused");
    if (status.error().message.empty()) return incorrect(what, "prepack refused it without a word");
  }
  return std::nullopt;
}

// Documented as optional: the product with alpha 1. Else refused, or the same product.
Finding try_without_alpha(Trial& trial, Gemm& gemm, const Operands& operands) {
  const std::string what = "alpha left out";
  const auto output = launch(trial, gemm, operands.a, nullptr);
  if (output) {
    Operands plain = operands;
    plain.alpha = 1.0f;
    return judge_output(trial, what, plain, *output, sharp_policy(trial));
  }
  const auto* refusal = std::get_if<Failed>(&output.error());
  if (refusal == nullptr || trial.contract.alpha_optional) return with_prefix(output.error(), what);
  if (refusal->error.message.empty()) return incorrect(what, "launch refused it without a word");
  return std::nullopt;
}

}  // namespace

Finding try_contract(Trial& trial) {
  const GemmProblem& problem = trial.the_case.problem;
  const auto operands = make_integer_operands(problem, trial.the_case.seed);
  if (!operands) return failed("", "operands", operands.error());
  auto gemm = prepare_gemm(trial, problem, operands->b);
  if (!gemm) return gemm.error();
  const auto judged_launch = [&](const char* what) -> Finding {
    const auto output = launch(trial, *gemm, operands->a, &operands->alpha);
    if (!output) return with_prefix(output.error(), what);
    return judge_output(trial, what, *operands, *output, sharp_policy(trial));
  };
  if (auto wrong = judged_launch("every argument given")) return wrong;
  if (auto wrong = try_without_alpha(trial, *gemm, *operands)) return wrong;
  const auto others = make_others(problem);
  if (!others) return failed("", "operands", others.error());
  for (const auto& misuse : kMisuses) {
    if (auto wrong = try_misuse(trial, *gemm, *operands, *others, misuse)) return wrong;
  }
  if (auto wrong = try_wrong_weights(trial, problem, operands->b)) return wrong;
  return judged_launch("after the refusals");
}

}  // namespace nibble
