// SPDX-License-Identifier: Apache-2.0
// B that comes from elsewhere: the experiments that run on it, as others quantized it.
#include <gtest/gtest.h>

#include "probe/load_weights.h"
#include "probe/make_operands.h"
#include "probe/run_case.h"
#include "reference/quantize.h"
#include "unit/probe/faulty_backend.h"

namespace nibble {
namespace {

constexpr std::int64_t kRows = 48, kColumns = 160;
constexpr Experiment kExperiments[] = {Experiment::random, Experiment::pads, Experiment::canary,
                                       Experiment::repeat};

std::vector<float> source() {
  RandomBits random(5);
  std::vector<float> data(kRows * kColumns);
  for (float& x : data) x = 0.05f * random.normal();
  return data;
}

std::vector<BlockTensor> tensors() {
  std::vector<BlockTensor> result;
  const auto data = source();
  for (const auto& rule : EnumNames<Nvfp4Rule>::table) {
    auto made = quantize_nvfp4(data, kRows, kColumns, rule.first);
    EXPECT_TRUE(made);
    if (made) result.push_back(std::move(made->tensor));
  }
  for (const auto& rule : EnumNames<Mxfp4Rule>::table) {
    auto made = quantize_mxfp4(data, kRows, kColumns, rule.first);
    EXPECT_TRUE(made);
    if (made) result.push_back(std::move(made->tensor));
  }
  return result;
}

Case make_case(const BlockTensor& b, Experiment experiment) {
  Case the_case;
  the_case.backend = "faulty";
  the_case.experiment = experiment;
  the_case.problem.shape = {17, kRows, kColumns};
  the_case.problem.a = Activation::bf16;
  the_case.problem.b = b.format;
  the_case.problem.b_scales = ScaleOrder::tiled_128x4;
  the_case.problem.out = OutType::f32;
  the_case.problem.source = "file:tensor";
  return the_case;
}

TEST(Weights, OfEveryRuleAreMultipliedRight) {
  for (const BlockTensor& b : tensors()) {
    for (const Experiment experiment : kExperiments) {
      for (const ScaleOrder stored : {ScaleOrder::row_major, ScaleOrder::tiled_128x4}) {
        const auto as_stored = relayout(b.view(), stored);
        ASSERT_TRUE(as_stored);
        const Case the_case = make_case(b, experiment);
        const auto outcome = run_case(*make_faulty_backend(Mistake::none), the_case, &*as_stored);
        EXPECT_TRUE(std::holds_alternative<Correct>(outcome.verdict))
            << case_name(the_case) << ": " << why(outcome.verdict);
        EXPECT_EQ(outcome.problem.source, "file:tensor");
      }
    }
  }
}

TEST(Weights, FaultsShowOnThemToo) {
  const auto b = tensors().front();
  const auto verdict = [&b](Mistake mistake, Experiment experiment) {
    return run_case(*make_faulty_backend(mistake), make_case(b, experiment), &b).verdict;
  };
  for (const Mistake mistake :
       {Mistake::ignores_alpha, Mistake::drops_one_product, Mistake::reads_other_layout})
    EXPECT_TRUE(std::holds_alternative<Incorrect>(verdict(mistake, Experiment::random)));
  EXPECT_TRUE(std::holds_alternative<Incorrect>(verdict(Mistake::reads_pads, Experiment::pads)));
}

TEST(Weights, ComeFromAFileOfEveryConvention) {
  const std::pair<const char*, const char*> kTensors[] = {
      {"modelopt-nvfp4-minilm-layer0/model.safetensors", "encoder.layer.0.attention.self.query"},
      {"compressed-tensors-nvfp4-w4a4/model.safetensors", "query.weight_packed"},
      {"compressed-tensors-mxfp4-w4a16/model.safetensors", "query"},
      {"torchao-130x96/weights.safetensors", "nvfp4.two_level.swizzled"},
      {"gguf-minilm-layer0-query/weights.gguf", "nvfp4.weight"}};
  for (const auto& [file, tensor] : kTensors) {
    Case the_case;
    the_case.backend = "faulty";
    the_case.weights_file = std::string(NIBBLE_TEST_DATA) + "/fixtures/" + file;
    the_case.tensor = tensor;
    const auto info = read_weights_info(the_case.weights_file, tensor, std::nullopt);
    ASSERT_TRUE(info) << info.error().message;
    the_case.problem.shape = {3, info->rows, info->columns};
    the_case.problem.a = Activation::bf16;
    the_case.problem.b = info->format;
    the_case.problem.out = OutType::f32;
    const auto right = run_case(*make_faulty_backend(Mistake::none), the_case);
    EXPECT_TRUE(std::holds_alternative<Correct>(right.verdict)) << file << why(right.verdict);
    const auto wrong = run_case(*make_faulty_backend(Mistake::drops_last_block), the_case);
    EXPECT_TRUE(std::holds_alternative<Incorrect>(wrong.verdict)) << file;
    the_case.tensor = "nothing";
    const auto failed = run_case(*make_faulty_backend(Mistake::none), the_case);
    EXPECT_TRUE(std::holds_alternative<Failed>(failed.verdict)) << file;
  }
}

TEST(Weights, OfAnotherSizeThanPlannedAreAFailure) {
  const auto b = tensors().front();
  Case the_case = make_case(b, Experiment::random);
  the_case.problem.shape.n = kRows + 1;
  const auto outcome = run_case(*make_faulty_backend(Mistake::none), the_case, &b);
  EXPECT_TRUE(std::holds_alternative<Failed>(outcome.verdict));
}

}  // namespace
}  // namespace nibble
