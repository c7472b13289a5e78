// SPDX-License-Identifier: Apache-2.0
// Published bugs of FP4 GEMMs whose kind the probe must see (the names are those of
// docs/probing.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/small_floats.h"
#include "probe/make_operands.h"
#include "probe/run_case.h"
#include "unit/probe/faulty_backend.h"

namespace nibble {
namespace {

using testing::HasSubstr;

Case make_case(Experiment experiment, GemmShape shape = {32, 48, 256}) {
  Case the_case;
  the_case.backend = "faulty";
  the_case.experiment = experiment;
  the_case.problem.shape = shape;
  the_case.problem.out = OutType::f32;
  the_case.seed = 3;
  return the_case;
}

Verdict verdict_of(Mistake mistake, const Case& the_case) {
  return run_case(*make_faulty_backend(mistake), the_case).verdict;
}

// Two bytes of a scalar read where four were written: the result is zeros or nearly.
TEST(ProbeBugCases, B1_AlphaReadInAnotherTypeShows) {
  for (const std::int64_t m : {1, 32, 384}) {
    const auto verdict =
        verdict_of(Mistake::alpha_as_bf16, make_case(Experiment::random, {m, 48, 256}));
    EXPECT_TRUE(std::holds_alternative<Incorrect>(verdict)) << "m=" << m;
  }
}

// The bytes that a GEMM is judged on are made on the host, from the seed alone, and no quantizer of
// the implementation is between: only so is a wrong result the kernel's.
class Recorder final : public PreparedGemm {
 public:
  Recorder(std::unique_ptr<PreparedGemm> inner, std::vector<std::uint8_t>& seen)
      : inner_(std::move(inner)), seen_(seen) {}
  std::string kernel_name() const override { return inner_->kernel_name(); }
  std::int64_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  Status prepack(const BlockTensorView& b) override {
    seen_.assign(b.codes.begin(), b.codes.end());
    seen_.insert(seen_.end(), b.scales.begin(), b.scales.end());
    return inner_->prepack(b);
  }
  Status launch(const GemmArguments& arguments) const override { return inner_->launch(arguments); }

 private:
  std::unique_ptr<PreparedGemm> inner_;
  std::vector<std::uint8_t>& seen_;
};

class RecordingBackend final : public Backend {
 public:
  std::string_view name() const override { return "recorder"; }
  std::string_view summary() const override { return "keeps the bytes of B"; }
  Result<std::string> version() const override { return "1"; }
  Contract contract() const override { return inner_->contract(); }
  Support supports(const GemmProblem& problem, const CpuInfo& cpu) const override {
    return inner_->supports(problem, cpu);
  }
  Result<std::unique_ptr<PreparedGemm>> prepare(const GemmProblem& problem) const override {
    auto kernel = inner_->prepare(problem);
    if (!kernel) return kernel;
    return std::make_unique<Recorder>(std::move(*kernel), seen);
  }
  mutable std::vector<std::uint8_t> seen;

 private:
  std::unique_ptr<Backend> inner_ = make_faulty_backend(Mistake::none);
};

TEST(ProbeBugCases, B5_TheKernelIsJudgedOnBytesMadeOnTheHost) {
  const RecordingBackend backend;
  const Case the_case = make_case(Experiment::random);
  EXPECT_TRUE(std::holds_alternative<Correct>(run_case(backend, the_case).verdict));
  const auto operands = make_random_operands(the_case.problem, the_case.seed);
  ASSERT_TRUE(operands);
  std::vector<std::uint8_t> expected = operands->b.codes;
  expected.insert(expected.end(), operands->b.scales.begin(), operands->b.scales.end());
  EXPECT_EQ(backend.seen, expected);
}

// Scale buffers that nobody filled: what the pad holds must not matter, in both tiled layouts and
// for few rows.
TEST(ProbeBugCases, C5_UnfilledPadsShow) {
  for (const ScaleOrder order : {ScaleOrder::tiled_128x4, ScaleOrder::tiled_8x4}) {
    for (const std::int64_t m : {1, 8, 31, 32}) {
      Case the_case = make_case(Experiment::pads, {m, 161, 208});
      the_case.problem.a_scales = the_case.problem.b_scales = order;
      const auto wrong = verdict_of(Mistake::reads_pads, the_case);
      ASSERT_TRUE(std::holds_alternative<Incorrect>(wrong)) << name(order) << " m=" << m;
      EXPECT_THAT(why(wrong), HasSubstr("pad bytes 0x7f in B's scales"));
      EXPECT_TRUE(std::holds_alternative<Correct>(verdict_of(Mistake::none, the_case)));
    }
  }
}

// Zero blocks give zeros, a NaN scale gives NaN in its row or column and nowhere else.
TEST(ProbeBugCases, E2_E4_ZeroAndNanScalesStayWhereTheyAre) {
  for (const Format format : {Format::nvfp4, Format::mxfp4}) {
    Case the_case = make_case(Experiment::extremes);
    the_case.problem.a = activation_of(format);
    the_case.problem.b = format;
    EXPECT_TRUE(std::holds_alternative<Correct>(verdict_of(Mistake::none, the_case)));
    const auto verdict = verdict_of(Mistake::rounds_nan_scale_away, the_case);
    ASSERT_TRUE(std::holds_alternative<Incorrect>(verdict));
    EXPECT_THAT(why(verdict), HasSubstr("NaN scale in one block of A"));
  }
}

// A judge that compares 0 with 0 sees nothing: a result of zeros is wrong in every experiment, and
// no experiment's expected result is zeros.
TEST(ProbeBugCases, E7_NoExperimentExpectsZeros) {
  const Experiment kProducts[] = {Experiment::integer, Experiment::random, Experiment::wide};
  for (const Experiment experiment : kProducts) {
    const auto outcome = run_case(*make_faulty_backend(Mistake::none), make_case(experiment));
    ASSERT_TRUE(outcome.stats);
    EXPECT_FALSE(outcome.stats->all_zeros);
    EXPECT_GT(outcome.stats->abs_mean, 0);
  }
}

// Each output type is a case of its own; what overflows f16 is infinite there and finite in bf16.
TEST(ProbeBugCases, E9_EveryOutputTypeIsRunAndOverflowIsNoNan) {
  for (const OutType out : {OutType::bf16, OutType::f16, OutType::f32}) {
    for (const Activation a : {Activation::bf16, Activation::f16}) {
      Case the_case = make_case(Experiment::extremes);
      the_case.problem.a = a;
      the_case.problem.out = out;
      const auto verdict = verdict_of(Mistake::none, the_case);
      EXPECT_TRUE(std::holds_alternative<Correct>(verdict)) << why(verdict);
      EXPECT_TRUE(
          std::holds_alternative<Incorrect>(verdict_of(Mistake::flushes_small_scales, the_case)));
    }
  }
}

TEST(ProbeBugCases, F4_AnEmptyBatchIsServedOrRefusedInWords) {
  const Case the_case = make_case(Experiment::extremes);
  EXPECT_TRUE(std::holds_alternative<Correct>(verdict_of(Mistake::none, the_case)));
  const auto verdict = verdict_of(Mistake::fails_at_m_0, the_case);
  ASSERT_TRUE(std::holds_alternative<Failed>(verdict));
  EXPECT_EQ(why(verdict), "m=0: launch: empty grid");
}

// The rules that let zeros, a gain of 0.72 and swapped scales pass elsewhere.
TEST(ProbeBugCases, J1_CosineBlindFaultsAreWrong) {
  for (const Mistake mistake : {Mistake::ignores_alpha, Mistake::swaps_rows_of_scales,
                                Mistake::drops_one_product, Mistake::drops_last_block}) {
    for (const OutType out : {OutType::bf16, OutType::f32}) {
      Case the_case = make_case(Experiment::random, {64, 64, 1024});
      the_case.problem.out = out;
      EXPECT_TRUE(std::holds_alternative<Incorrect>(verdict_of(mistake, the_case)))
          << static_cast<int>(mistake) << " " << name(out);
    }
  }
}

// K that is no multiple of a tile: refused or right.
TEST(ProbeBugCases, D3_EveryKResidueIsTried) {
  Case the_case = make_case(Experiment::edges);
  EXPECT_TRUE(std::holds_alternative<Correct>(verdict_of(Mistake::none, the_case)));
  for (const Mistake mistake :
       {Mistake::wrong_on_odd_k, Mistake::drops_k_tail, Mistake::accepts_broken_k})
    EXPECT_TRUE(std::holds_alternative<Incorrect>(verdict_of(mistake, the_case)));
}

}  // namespace
}  // namespace nibble
