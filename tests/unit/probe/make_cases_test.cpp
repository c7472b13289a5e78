// SPDX-License-Identifier: Apache-2.0
#include "probe/make_cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace nibble {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Serves what its contract says; nothing runs.
class PlannedBackend final : public Backend {
 public:
  PlannedBackend(std::string name, Contract contract)
      : name_(std::move(name)), contract_(std::move(contract)) {}
  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return "for plans"; }
  Result<std::string> version() const override { return "1"; }
  Contract contract() const override { return contract_; }
  Support supports(const GemmProblem& problem, const CpuInfo&) const override {
    return check_contract(contract_, problem);
  }
  Result<std::unique_ptr<PreparedGemm>> prepare(const GemmProblem&) const override {
    return fail(ErrorKind::failed, "only planned");
  }

 private:
  std::string name_;
  Contract contract_;
};

Contract w4a4() {
  Contract contract;
  contract.activations = {Activation::nvfp4, Activation::mxfp4, Activation::bf16};
  contract.formats = {Format::nvfp4, Format::mxfp4};
  contract.outs = {OutType::bf16, OutType::f32};
  contract.a_scales = contract.b_scales = {ScaleOrder::row_major, ScaleOrder::tiled_128x4};
  return contract;
}

Contract tiled_bf16_only() {
  Contract contract;
  contract.activations = {Activation::nvfp4};
  contract.formats = {Format::nvfp4};
  contract.outs = {OutType::bf16};
  contract.a_scales = contract.b_scales = {ScaleOrder::tiled_128x4};
  contract.n_multiple = contract.k_multiple = 64;
  return contract;
}

class MakeCases : public testing::Test {
 protected:
  std::vector<Case> plan(const ProbeRequest& request) {
    const std::vector<const Backend*> backends{&general_, &tiled_};
    auto cases = make_cases(request, backends, {});
    EXPECT_TRUE(cases) << cases.error().message;
    return cases ? *cases : std::vector<Case>();
  }
  std::string error(const ProbeRequest& request) {
    const std::vector<const Backend*> backends{&general_, &tiled_};
    const auto cases = make_cases(request, backends, {});
    return cases ? "accepted" : cases.error().message;
  }
  PlannedBackend general_{"general", w4a4()}, tiled_{"tiled", tiled_bf16_only()};
};

template <class T, class F>
std::set<T> values(const std::vector<Case>& cases, const F& value) {
  std::set<T> result;
  for (const Case& each : cases) result.insert(value(each));
  return result;
}

TEST_F(MakeCases, DefaultRunsEveryExperimentOfEveryKindThatIsOffered) {
  const auto cases = plan({});
  for (const char* backend : {"general", "tiled"}) {
    std::vector<Case> of_backend;
    std::copy_if(cases.begin(), cases.end(), std::back_inserter(of_backend),
                 [backend](const Case& each) { return each.backend == backend; });
    EXPECT_EQ(values<Experiment>(of_backend, [](const Case& c) { return c.experiment; }).size(),
              10u);
    for (const Case& each : of_backend) {
      EXPECT_EQ(each.seed, 1u);
      EXPECT_TRUE(each.problem.shape.n % 64 == 0 || each.backend == "general");
      if (each.backend == "tiled") {
        EXPECT_EQ(each.problem.a_scales, ScaleOrder::tiled_128x4);
      }
    }
  }
  const auto kinds = values<std::pair<Activation, Format>>(
      cases, [](const Case& each) { return std::pair(each.problem.a, each.problem.b); });
  // No nvfp4 x mxfp4 unless flags name both.
  EXPECT_THAT(kinds, ElementsAre(std::pair(Activation::nvfp4, Format::nvfp4),
                                 std::pair(Activation::mxfp4, Format::mxfp4),
                                 std::pair(Activation::bf16, Format::nvfp4),
                                 std::pair(Activation::bf16, Format::mxfp4)));
}

TEST_F(MakeCases, NamesAreUniqueAndTheSharpOutputIsF32) {
  const auto cases = plan({});
  const auto names = values<std::string>(cases, case_name);
  EXPECT_EQ(names.size(), cases.size());
  EXPECT_TRUE(names.count("general/random/nvfp4xnvfp4/128x256x256/f32"));
  EXPECT_TRUE(names.count("general/random/nvfp4xnvfp4/128x256x256/bf16"));
  EXPECT_TRUE(names.count("general/random/bf16xmxfp4/1x4096x6144/f32"));
  EXPECT_TRUE(names.count("general/pads/nvfp4xnvfp4/31x161x224/f32/tiled_128x4+tiled_128x4"));
  EXPECT_TRUE(names.count("tiled/pads/nvfp4xnvfp4/31x192x192/bf16/tiled_128x4+tiled_128x4"));
  EXPECT_FALSE(names.count("general/edges/nvfp4xnvfp4/31x161x224/f32"));
}

TEST_F(MakeCases, FlagsNarrow) {
  ProbeRequest request;
  request.backends = {"general"};
  request.experiments = {Experiment::random, Experiment::edges};
  request.shapes = {{1, 64, 128}, {2, 64, 128}};
  request.activations = {Activation::bf16};
  request.formats = {Format::nvfp4};
  request.outs = {OutType::f32};
  request.b_scales = {ScaleOrder::tiled_128x4};
  request.seed = 9;
  request.accept = AccumulationClass::reduced;
  request.limit_s = 3;
  request.memory_limit_bytes = 100;
  request.threads = 2;
  const auto cases = plan(request);
  ASSERT_EQ(cases.size(), 3u);  // two random, one edges
  for (const Case& each : cases) {
    EXPECT_EQ(each.problem.b_scales, ScaleOrder::tiled_128x4);
    EXPECT_EQ(each.problem.a_scales, ScaleOrder::row_major);
    EXPECT_EQ(each.seed, 9u);
    EXPECT_EQ(each.accept, AccumulationClass::reduced);
    EXPECT_EQ(each.limit_s, 3);
    EXPECT_EQ(each.memory_limit_bytes, 100);
    EXPECT_EQ(each.threads, 2);
  }
}

TEST_F(MakeCases, OneRowSaysThatAKindIsNotServed) {
  ProbeRequest request;
  request.backends = {"tiled"};
  request.activations = {Activation::bf16, Activation::nvfp4};
  const auto cases = plan(request);
  EXPECT_EQ(std::count_if(cases.begin(), cases.end(),
                          [](const Case& each) { return each.problem.a == Activation::bf16; }),
            1);
}

TEST_F(MakeCases, ShapesThatAreAskedForAreNotLost) {
  ProbeRequest request;
  request.backends = {"tiled"};
  request.shapes = {{4, 64, 64}, {4, 65, 64}, {4, 66, 64}};
  const auto cases = plan(request);
  const auto count = [&cases](std::int64_t n) {
    return std::count_if(cases.begin(), cases.end(),
                         [n](const Case& each) { return each.problem.shape.n == n; });
  };
  EXPECT_GE(count(64), 9);
  EXPECT_EQ(count(65), 1);
  EXPECT_EQ(count(66), 1);
}

TEST_F(MakeCases, MixedLayoutsAndFormatsWhereFlagsNameBoth) {
  ProbeRequest request;
  request.backends = {"general"};
  request.experiments = {Experiment::random};
  request.shapes = {{4, 64, 64}};
  request.activations = {Activation::nvfp4};
  request.formats = {Format::mxfp4};
  request.outs = {OutType::f32};
  request.a_scales = {ScaleOrder::tiled_128x4};
  request.b_scales = {ScaleOrder::row_major};
  const auto cases = plan(request);
  ASSERT_EQ(cases.size(), 1u);
  EXPECT_EQ(case_name(cases[0]), "general/random/nvfp4xmxfp4/4x64x64/f32/tiled_128x4+row_major");
}

TEST_F(MakeCases, WeightsGiveFormatAndSizes) {
  ProbeRequest request;
  request.weights_file = "m.safetensors";
  request.tensor = "x";
  request.weights = WeightsInfo{Format::nvfp4, 320, 640};
  request.declared_scales = ScaleOrder::tiled_128x4;
  const auto cases = plan(request);
  ASSERT_FALSE(cases.empty());
  for (const Case& each : cases) {
    EXPECT_EQ(each.problem.b, Format::nvfp4);
    EXPECT_EQ(each.problem.shape.n, 320);
    EXPECT_EQ(each.problem.shape.k, 640);
    EXPECT_EQ(each.problem.source, "m.safetensors:x");
    EXPECT_EQ(each.weights_file, "m.safetensors");
    EXPECT_EQ(each.tensor, "x");
    EXPECT_EQ(each.declared_scales, ScaleOrder::tiled_128x4);
  }
  EXPECT_EQ(
      values<Experiment>(cases, [](const Case& each) { return each.experiment; }),
      (std::set{Experiment::random, Experiment::pads, Experiment::canary, Experiment::repeat}));
  request.experiments = {Experiment::wide};
  EXPECT_THAT(error(request), HasSubstr("'wide' makes its own B"));
  request.experiments = {};
  request.formats = {Format::mxfp4};
  EXPECT_THAT(error(request), HasSubstr("is nvfp4"));
}

TEST_F(MakeCases, FilterAndUnknownNames) {
  ProbeRequest request;
  request.filter = "^general/(wide|integer)/nvfp4xnvfp4/.*f32$";
  EXPECT_THAT(values<Experiment>(plan(request), [](const Case& each) { return each.experiment; }),
              ElementsAre(Experiment::integer, Experiment::wide));
  request.filter = "[";
  EXPECT_THAT(error(request), HasSubstr("--filter: '[' is no regular expression"));
  request.filter = "nothing matches";
  EXPECT_TRUE(plan(request).empty());
  request.filter.clear();
  request.backends = {"nobody"};
  EXPECT_EQ(error(request), "--backend: 'nobody' is not one of general, tiled");
}

// What the report prints must plan the same case again.
TEST_F(MakeCases, ARerunPlansTheSameCase) {
  for (const Case& each : plan({})) {
    ProbeRequest request;
    request.backends = {each.backend};
    request.experiments = {each.experiment};
    request.shapes = {each.problem.shape};
    request.activations = {each.problem.a};
    request.formats = {each.problem.b};
    request.outs = {each.problem.out};
    if (is_block_format(each.problem.a)) request.a_scales = {each.problem.a_scales};
    request.b_scales = {each.problem.b_scales};
    request.seed = each.seed;
    const auto again = plan(request);
    ASSERT_EQ(again.size(), 1u) << case_name(each);
    EXPECT_EQ(again[0], each);
  }
}

TEST(ParseShapes, ListsAndRanges) {
  EXPECT_THAT(*parse_sizes("1,16,64"), ElementsAre(1, 16, 64));
  EXPECT_THAT(*parse_sizes("1-16*2"), ElementsAre(1, 2, 4, 8, 16));
  EXPECT_THAT(*parse_sizes("1-9+4,100"), ElementsAre(1, 5, 9, 100));
  EXPECT_THAT(*parse_sizes("3-5"), ElementsAre(3, 4, 5));
  EXPECT_THAT(*parse_sizes("0"), ElementsAre(0));
  EXPECT_THAT(*parse_shapes("1,2x64x128"),
              ElementsAre(GemmShape{1, 64, 128}, GemmShape{2, 64, 128}));
  EXPECT_EQ(parse_shapes("1-4096*2x4096x6144")->size(), 13u);
}

TEST(ParseShapes, SaysWhatIsWrong) {
  for (const char* text : {"", "128", "128x256", "1x2x3x4", "ax2x3", "1x2x", "-1x2x3", "1x2x3 ",
                           "1x2x5-3", "1x2x1-8*1", "1x2x0-8*2", "1x2x1-8+0", "1,x2x3",
                           "1x2x99999999999999999999", "1-1000000x1x1", "1x2x1-*2", "1x2x3-4/5"}) {
    const auto shapes = parse_shapes(text);
    EXPECT_FALSE(shapes) << text;
    if (!shapes) {
      EXPECT_EQ(shapes.error().kind, ErrorKind::invalid_argument);
    }
  }
  EXPECT_THAT(parse_shapes("128x256").error().message, HasSubstr("'128x256' is no MxNxK"));
}

}  // namespace
}  // namespace nibble
