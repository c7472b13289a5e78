// SPDX-License-Identifier: Apache-2.0
#include "probe/case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nibble {
namespace {

using testing::HasSubstr;

Case sample() {
  Case the_case;
  the_case.backend = "cpu";
  the_case.problem.shape = {128, 256, 512};
  the_case.problem.a = Activation::bf16;
  the_case.problem.b = Format::mxfp4;
  the_case.problem.out = OutType::f32;
  the_case.experiment = Experiment::pads;
  the_case.seed = 18446744073709551615u;
  return the_case;
}

TEST(CaseJson, KeepsEveryField) {
  Case the_case = sample();
  the_case.problem.b_scales = ScaleOrder::tiled_128x4;
  the_case.problem.source = "model.safetensors:x.weight_packed";
  the_case.accept = AccumulationClass::reduced;
  the_case.limit_s = 1.5;
  the_case.memory_limit_bytes = std::int64_t{5} << 40;
  the_case.weights_file = "a \"file\"\n.safetensors";
  the_case.tensor = "x.weight_packed";
  the_case.declared_scales = ScaleOrder::tiled_8x4;
  the_case.threads = 3;
  const std::string line = case_to_json(the_case);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto back = case_from_json(line);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, the_case);
}

TEST(CaseJson, RefusesWhatIsNoCase) {
  const std::string good = case_to_json(sample());
  const auto broken = [&good](const std::string& from, const std::string& to) {
    std::string text = good;
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const auto result = case_from_json(text);
    return result ? std::string("accepted") : result.error().message;
  };
  EXPECT_THAT(broken("\"backend\"", "\"back\""), HasSubstr("backend"));
  EXPECT_THAT(broken("\"pads\"", "\"padz\""), HasSubstr("experiment"));
  EXPECT_THAT(broken("\"m\":128", "\"m\":-128"), HasSubstr("problem.m"));
  EXPECT_THAT(broken("\"groups\":1", "\"groups\":0"), HasSubstr("groups"));
  EXPECT_THAT(broken("\"limit_s\":120.0", "\"limit_s\":-1"), HasSubstr("limit_s"));
  EXPECT_THAT(broken("\"limit_s\":120.0", "\"limit_s\":null"), HasSubstr("limit_s"));
  EXPECT_THAT(broken("\"accept\":\"fp32\"", "\"accept\":\"none\""), HasSubstr("accept"));
  EXPECT_THAT(broken("\"tensor\":\"\"", "\"tensor\":\"x\""), HasSubstr("tensor"));
  EXPECT_FALSE(case_from_json(""));
  EXPECT_FALSE(case_from_json(good.substr(0, good.size() / 2)));
  EXPECT_FALSE(case_from_json(std::string(1000000, '[')));
}

TEST(CaseName, HoldsWhatFiltersAskFor) {
  Case the_case = sample();
  EXPECT_EQ(case_name(the_case), "cpu/pads/bf16xmxfp4/128x256x512/f32");
  the_case.problem.b_scales = ScaleOrder::tiled_128x4;
  EXPECT_EQ(case_name(the_case), "cpu/pads/bf16xmxfp4/128x256x512/f32/row_major+tiled_128x4");
}

TEST(RerunCommand, NamesEverythingThatMatters) {
  Case the_case = sample();
  EXPECT_EQ(rerun_command(the_case),
            "nibble probe --backend cpu --experiment pads --shape 128x256x512 --a bf16 --b mxfp4 "
            "--out f32 --b-scales row_major --seed 18446744073709551615");
  the_case.problem.a = Activation::nvfp4;
  the_case.problem.b = Format::nvfp4;
  the_case.problem.a_scales = ScaleOrder::tiled_8x4;
  the_case.accept = AccumulationClass::reduced;
  the_case.limit_s = 2.5;
  the_case.memory_limit_bytes = 1 << 21;
  the_case.threads = 2;
  the_case.seed = 7;
  EXPECT_EQ(rerun_command(the_case),
            "nibble probe --backend cpu --experiment pads --shape 128x256x512 --a nvfp4 --b nvfp4 "
            "--out f32 --a-scales tiled_8x4 --b-scales row_major --seed 7 --accept reduced "
            "--timeout 2.5 --memory-limit-mib 2 --threads 2");
}

TEST(RerunCommand, QuotesForAShell) {
  Case the_case = sample();
  the_case.seed = 7;
  the_case.weights_file = "it's here/$HOME.safetensors";
  the_case.tensor = "x y";
  the_case.declared_scales = ScaleOrder::tiled_128x4;
  EXPECT_EQ(rerun_command(the_case),
            "nibble probe --backend cpu --experiment pads --weights 'it'\\''s "
            "here/$HOME.safetensors' --tensor 'x y' --scales tiled_128x4 --shape 128 --a bf16 "
            "--out f32 --b-scales row_major --seed 7");
}

}  // namespace
}  // namespace nibble
