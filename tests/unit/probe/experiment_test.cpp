// SPDX-License-Identifier: Apache-2.0
// Each experiment objects to the mistakes that it is for, and to no honest result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <set>
#include <string>

#include "core/verdict.h"
#include "probe/run_case.h"
#include "unit/probe/faulty_backend.h"

namespace nibble {
namespace {

using testing::HasSubstr;

Case make_case(Experiment experiment) {
  Case the_case;
  the_case.backend = "faulty";
  the_case.experiment = experiment;
  the_case.problem.shape = {31, 33, 160};
  the_case.problem.out = OutType::f32;
  the_case.problem.a_scales = ScaleOrder::tiled_8x4;
  the_case.problem.b_scales = ScaleOrder::tiled_128x4;
  the_case.seed = 7;
  return the_case;
}

Outcome run(Mistake mistake, Experiment experiment) {
  return run_case(*make_faulty_backend(mistake), make_case(experiment));
}

std::set<Experiment> objectors(Mistake mistake) {
  std::set<Experiment> result;
  for (const auto& entry : EnumNames<Experiment>::table) {
    const auto outcome = run(mistake, entry.first);
    EXPECT_EQ(outcome.backend, "faulty");
    if (is_fault(outcome.verdict)) {
      EXPECT_FALSE(why(outcome.verdict).empty());
      result.insert(entry.first);
    }
  }
  return result;
}

std::string names(const std::set<Experiment>& experiments) {
  std::string text;
  for (const Experiment each : experiments) text += std::string(name(each)) + " ";
  return text;
}

using enum Experiment;
using Set = std::set<Experiment>;
const Set kAll{integer, random, wide, locate, pads, canary, contract, repeat, extremes, edges};

Set all_but(std::initializer_list<Experiment> left_out) {
  Set rest = kAll;
  for (const Experiment each : left_out) rest.erase(each);
  return rest;
}

TEST(Experiments, FindNothingInAnHonestBackend) {
  for (const Activation a : {Activation::nvfp4, Activation::mxfp4, Activation::bf16,
                             Activation::f16, Activation::q8_0}) {
    for (const Format b : {Format::nvfp4, Format::mxfp4}) {
      for (const OutType out : {OutType::bf16, OutType::f16, OutType::f32}) {
        for (const auto& entry : EnumNames<Experiment>::table) {
          Case the_case = make_case(entry.first);
          the_case.problem.a = a;
          the_case.problem.b = b;
          the_case.problem.out = out;
          if (!is_block_format(a)) the_case.problem.a_scales = ScaleOrder::row_major;
          const auto outcome = run_case(*make_faulty_backend(Mistake::none), the_case);
          const auto* correct = std::get_if<Correct>(&outcome.verdict);
          ASSERT_NE(correct, nullptr) << case_name(the_case) << ": " << why(outcome.verdict);
          EXPECT_GT(correct->accuracy.checked, 0);
          EXPECT_EQ(correct->accuracy.wrong, 0);
          EXPECT_EQ(outcome.kernel, "double loops");
          EXPECT_EQ(outcome.version, "1");
          EXPECT_EQ(outcome.note, "");
        }
      }
    }
  }
}

TEST(Experiments, FindNothingInAnHonestBackendInEveryLayout) {
  for (const auto& a : EnumNames<ScaleOrder>::table) {
    for (const auto& b : EnumNames<ScaleOrder>::table) {
      for (const auto& entry : EnumNames<Experiment>::table) {
        Case the_case = make_case(entry.first);
        the_case.problem.a_scales = a.first;
        the_case.problem.b_scales = b.first;
        const auto outcome = run_case(*make_faulty_backend(Mistake::none), the_case);
        EXPECT_TRUE(std::holds_alternative<Correct>(outcome.verdict))
            << case_name(the_case) << ": " << why(outcome.verdict);
      }
    }
  }
}

struct Expected {
  const char* name;
  Mistake mistake;
  Set objectors;
};

class Mistakes : public testing::TestWithParam<Expected> {};

TEST_P(Mistakes, AreSeenByTheExperimentsThatAreForThem) {
  const auto& expected = GetParam();
  const Set seen = objectors(expected.mistake);
  EXPECT_EQ(seen, expected.objectors)
      << "seen by " << names(seen) << "; expected " << names(expected.objectors);
}

INSTANTIATE_TEST_SUITE_P(
    Backends, Mistakes,
    testing::Values(
        Expected{"none", Mistake::none, {}}, Expected{"reads_pads", Mistake::reads_pads, {pads}},
        Expected{"reads_row_pads", Mistake::reads_row_pads, {pads}},
        Expected{"misses_last_column", Mistake::misses_last_column, kAll},
        Expected{"writes_past_output", Mistake::writes_past_output, kAll},
        Expected{"writes_before_output", Mistake::writes_before_output, kAll},
        Expected{"writes_between_rows", Mistake::writes_between_rows, {canary}},
        Expected{"writes_past_workspace", Mistake::writes_past_workspace, kAll},
        Expected{"changes_a", Mistake::changes_a, kAll},
        Expected{"changes_b", Mistake::changes_b, kAll},
        Expected{"changes_memory_round_b", Mistake::changes_memory_round_b, kAll},
        Expected{"needs_alpha", Mistake::needs_alpha, {contract}},
        Expected{"ignores_alpha", Mistake::ignores_alpha, kAll},
        Expected{"alpha_as_bf16", Mistake::alpha_as_bf16, kAll},
        Expected{"depends_on_last_call", Mistake::depends_on_last_call, {contract, repeat}},
        Expected{"wrong_third_time", Mistake::wrong_third_time, {contract, repeat}},
        Expected{"keeps_stale_workspace", Mistake::keeps_stale_workspace, {canary}},
        Expected{"reads_b_after_prepack", Mistake::reads_b_after_prepack, {canary}},
        Expected{"drops_k_tail", Mistake::drops_k_tail, kAll},
        Expected{"drops_last_block", Mistake::drops_last_block, kAll},
        Expected{"reads_other_layout", Mistake::reads_other_layout, kAll},
        Expected{"swaps_rows_of_scales", Mistake::swaps_rows_of_scales, kAll},
        Expected{"accumulates_in_f16", Mistake::accumulates_in_f16, all_but({locate})},
        Expected{"drops_one_product", Mistake::drops_one_product, kAll},
        Expected{"rounds_nan_scale_away", Mistake::rounds_nan_scale_away, {extremes}},
        Expected{"flushes_small_scales", Mistake::flushes_small_scales, {wide, extremes}},
        Expected{"ignores_output_size", Mistake::ignores_output_size, {contract}},
        Expected{"ignores_out_type", Mistake::ignores_out_type, {contract}},
        Expected{"ignores_shape_of_a", Mistake::ignores_shape_of_a, {contract}},
        Expected{"ignores_kind_of_a", Mistake::ignores_kind_of_a, {contract}},
        Expected{"accepts_any_b", Mistake::accepts_any_b, {contract}},
        Expected{"writes_before_refusing", Mistake::writes_before_refusing, {contract}},
        Expected{"refuses_silently", Mistake::refuses_silently, {contract}},
        Expected{"wrong_on_odd_k", Mistake::wrong_on_odd_k, {extremes, edges}},
        Expected{"wrong_at_m_65", Mistake::wrong_at_m_65, {edges}},
        Expected{"fails_at_m_0", Mistake::fails_at_m_0, {extremes}},
        Expected{"accepts_broken_k", Mistake::accepts_broken_k, {edges}},
        Expected{"fails_in_prepare", Mistake::fails_in_prepare, all_but({edges})},
        Expected{"throws", Mistake::throws, kAll}),
    [](const auto& info) { return std::string(info.param.name); });

std::string words(Mistake mistake, Experiment experiment) {
  return why(run(mistake, experiment).verdict);
}

TEST(Words, SayWhichSubRunAndWhatItSaw) {
  EXPECT_THAT(words(Mistake::reads_pads, pads),
              HasSubstr("pad bytes 0x7f in B's scales changed 1 outputs, first at row 0 column 0"));
  EXPECT_THAT(words(Mistake::reads_row_pads, pads),
              HasSubstr("pad bytes 0x7e in the rows of A changed 1 outputs"));
  EXPECT_EQ(words(Mistake::misses_last_column, canary), "column 32 of the output never written");
  EXPECT_EQ(words(Mistake::writes_past_output, random),
            "launch: memory round the output: 1 bytes behind it were written, the nearest at "
            "distance 1");
  EXPECT_THAT(words(Mistake::writes_between_rows, canary),
              HasSubstr("the gap behind row 0 of the output was written at distance 1"));
  EXPECT_EQ(words(Mistake::changes_a, random),
            "launch: the codes of A were changed, first at byte 0");
  EXPECT_EQ(words(Mistake::changes_b, random),
            "prepack: the codes of B were changed, first at byte 0");
  EXPECT_THAT(words(Mistake::needs_alpha, contract), HasSubstr("alpha left out"));
  EXPECT_THAT(words(Mistake::wrong_third_time, repeat), HasSubstr("round 1, activations 1"));
  EXPECT_THAT(words(Mistake::reads_b_after_prepack, canary),
              HasSubstr("B overwritten after prepack"));
  EXPECT_EQ(words(Mistake::ignores_output_size, contract),
            "an output one byte too short: launch accepted it; it must be refused");
  EXPECT_THAT(words(Mistake::wrong_at_m_65, edges), HasSubstr("m=65"));
  EXPECT_EQ(words(Mistake::fails_at_m_0, extremes), "m=0: launch: empty grid");
  EXPECT_EQ(words(Mistake::accepts_broken_k, edges),
            "k=8 is no whole number of blocks of 16, yet prepare() accepted it");
  EXPECT_THAT(words(Mistake::fails_in_prepare, random),
              HasSubstr("prepare: status 15: no algorithm"));
  EXPECT_EQ(words(Mistake::throws, random), "exception: no plan for this shape");
}

TEST(Verdicts, SayWhatAWrongResultLooksLike) {
  const auto looks_like = [](Mistake mistake, Experiment experiment) {
    Case the_case = make_case(experiment);
    the_case.problem.shape = {128, 160, 320};
    const auto outcome = run_case(*make_faulty_backend(mistake), the_case);
    const auto* wrong = std::get_if<Incorrect>(&outcome.verdict);
    return wrong && wrong->diagnosis ? wrong->diagnosis->looks_like.front() : std::string();
  };
  for (const Experiment experiment : {integer, random, canary}) {
    EXPECT_EQ(looks_like(Mistake::ignores_alpha, experiment), "alpha_ignored");
    EXPECT_THAT(looks_like(Mistake::drops_k_tail, experiment), HasSubstr("k_tail_dropped"));
    EXPECT_THAT(looks_like(Mistake::misses_last_column, experiment), HasSubstr("unwritten"));
    EXPECT_THAT(looks_like(Mistake::reads_other_layout, experiment), HasSubstr("scales_read_as"));
  }
}

TEST(Verdicts, AreFailedForErrorsAndExceptions) {
  EXPECT_TRUE(std::holds_alternative<Failed>(run(Mistake::fails_in_prepare, random).verdict));
  EXPECT_TRUE(std::holds_alternative<Failed>(run(Mistake::throws, random).verdict));
  // Who refuses every size in words has given an answer.
  EXPECT_TRUE(std::holds_alternative<Unsupported>(run(Mistake::fails_in_prepare, edges).verdict));
}

TEST(Verdicts, AreUnsupportedInTheBackendsWords) {
  Case the_case = make_case(random);
  the_case.problem.shape.k = 24;
  const auto outcome = run_case(*make_faulty_backend(Mistake::none), the_case);
  ASSERT_TRUE(std::holds_alternative<Unsupported>(outcome.verdict));
  EXPECT_THAT(why(outcome.verdict), HasSubstr("k=24 is not a multiple of 16"));
}

class AbsentBackend final : public Backend {
 public:
  explicit AbsentBackend(ErrorKind kind) : kind_(kind) {}
  std::string_view name() const override { return "absent"; }
  std::string_view summary() const override { return "not here"; }
  Result<std::string> version() const override { return fail(kind_, "no libabsent.so"); }
  Contract contract() const override { return make_faulty_backend(Mistake::none)->contract(); }
  Support supports(const GemmProblem&, const CpuInfo&) const override { return Supported{}; }
  Result<std::unique_ptr<PreparedGemm>> prepare(const GemmProblem&) const override {
    return fail(ErrorKind::failed, "never asked");
  }

 private:
  ErrorKind kind_;
};

TEST(Verdicts, AnAbsentLibraryIsUnsupportedABrokenOneFailed) {
  const auto absent = run_case(AbsentBackend(ErrorKind::not_found), make_case(random));
  ASSERT_TRUE(std::holds_alternative<Unsupported>(absent.verdict));
  EXPECT_EQ(why(absent.verdict), "no libabsent.so");
  EXPECT_EQ(absent.version, "");
  const auto broken = run_case(AbsentBackend(ErrorKind::corrupt), make_case(random));
  ASSERT_TRUE(std::holds_alternative<Failed>(broken.verdict));
  EXPECT_EQ(why(broken.verdict), "version: no libabsent.so");
}

TEST(Verdicts, AcceptWhatTheCaseAccepts) {
  Case the_case = make_case(integer);
  the_case.accept = AccumulationClass::reduced;
  const auto outcome = run_case(*make_faulty_backend(Mistake::accumulates_in_f16), the_case);
  const auto* correct = std::get_if<Correct>(&outcome.verdict);
  ASSERT_NE(correct, nullptr) << why(outcome.verdict);
  EXPECT_EQ(correct->accuracy.accumulation, AccumulationClass::reduced);
}

TEST(Verdicts, NameABackendThatThisBuildLacks) {
  Case the_case = make_case(random);
  the_case.backend = "nobody";
  const auto outcome = run_case(the_case);
  ASSERT_TRUE(std::holds_alternative<Failed>(outcome.verdict));
  EXPECT_THAT(why(outcome.verdict), HasSubstr("nobody"));
}

}  // namespace
}  // namespace nibble
