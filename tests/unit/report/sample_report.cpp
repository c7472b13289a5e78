// SPDX-License-Identifier: Apache-2.0
#include "unit/report/sample_report.h"

#include <string>
#include <utility>

namespace nibble {
namespace {

Outcome outcome(std::string backend, std::string version, Activation a, Format b,
                Experiment experiment, Verdict verdict) {
  Outcome result;
  result.backend = std::move(backend);
  result.version = std::move(version);
  result.experiment = experiment;
  result.problem.shape = {128, 256, 256};
  result.problem.a = a;
  result.problem.b = b;
  result.seed = 7;
  result.verdict = std::move(verdict);
  result.rerun = "nibble probe --backend " + result.backend + " --a " + std::string(name(a)) +
                 " --b " + std::string(name(b)) + " --shape 128x256x256 --experiment " +
                 std::string(name(experiment)) + " --seed 7";
  return result;
}

Environment sample_environment() {
  Environment environment;
  environment.cpu = {"Example CPU 9000",
                     16,
                     std::int64_t{32} << 20,
                     std::int64_t{64} << 30,
                     {"avx2", "avx512f", "avx512_vnni"},
                     "AVX3_DL"};
  environment.gpus = {{"Example GPU", "GPU-0000", "12.0", std::int64_t{32} << 30}};
  environment.libraries = {{"openblas", "0.3.21", "/usr/lib/libopenblas.so.0", ""},
                           {"onednn", std::nullopt, std::nullopt, "apt-get install libdnnl2"}};
  return environment;
}

Outcome correct_from_file() {
  Correct correct{right_accuracy(), Timing{12.5, 12.25, 13.0, 40, "noise"}};
  Outcome result = outcome("cpu", "0.1.0", Activation::bf16, Format::nvfp4, Experiment::random,
                           std::move(correct));
  result.problem.source = "models/tiny.safetensors:layers.0.q_proj";
  result.problem.a_scales = ScaleOrder::row_major;
  result.problem.b_scales = ScaleOrder::tiled_128x4;
  result.problem.out = OutType::f32;
  result.kernel = "gemm_cpu bf16 x nvfp4";
  result.stats = OutputStats{false, 3.5, 0.25, 0};
  result.elapsed_s = 0.5;
  return result;
}

}  // namespace

Accuracy right_accuracy() {
  Accuracy accuracy;
  accuracy.accumulation = AccumulationClass::fp32;
  accuracy.worst_fraction_of_bound = 0.125;
  accuracy.noise = 0.99;
  accuracy.noise_limit = 1.16;
  accuracy.gain = 1.0000001;
  accuracy.gain_tolerance = 0.001;
  accuracy.signed_error = -0.002;
  accuracy.checked = 32768;
  accuracy.outside_fp32 = 3;
  accuracy.flushed = 2;
  accuracy.ulp_histogram = {32000, 700, 60, 5, 1, 1, 1, 0, 0, 0};
  return accuracy;
}

Accuracy wrong_accuracy() {
  Accuracy accuracy;
  accuracy.accumulation = AccumulationClass::none;
  accuracy.worst_fraction_of_bound = 4321.5;
  accuracy.gain = 0.5;
  accuracy.gain_tolerance = 0.0011;
  accuracy.checked = 32768;
  accuracy.wrong = 32000;
  accuracy.ulp_histogram = {700, 0, 0, 0, 0, 0, 0, 68, 32000, 0};
  accuracy.first_mismatch = Mismatch{0, 17, 1.5, 3.0, 0.0009765625};
  accuracy.why_wrong = "32000 of 32768 elements lie outside the fp32 bound";
  return accuracy;
}

// The strings of the wrong rows are hostile on purpose: terminal escapes, quotes, commas, markup.
Report sample_report() {
  Report report;
  report.argv = {"nibble", "probe", "--weights", "a b.safetensors"};
  report.git = {"0123456789abcdef0123456789abcdef01234567", true};
  report.partial = true;
  report.environment = sample_environment();
  report.outcomes.push_back(outcome("cpu", "0.1.0", Activation::nvfp4, Format::nvfp4,
                                    Experiment::integer, Correct{right_accuracy(), std::nullopt}));
  report.outcomes.push_back(correct_from_file());
  Incorrect incorrect{wrong_accuracy(), "row 0, column 17: got 1.5, expected 3 +- 0.000977",
                      Diagnosis{{"swapped_nibbles_b", "gain_half"},
                                "look at which nibble of a byte holds the even element"}};
  report.outcomes.push_back(outcome("openblas", "0.3.21", Activation::nvfp4, Format::nvfp4,
                                    Experiment::random, std::move(incorrect)));
  report.outcomes.push_back(outcome("openblas", "0.3.21", Activation::nvfp4, Format::nvfp4,
                                    Experiment::integer, Correct{right_accuracy(), std::nullopt}));
  report.outcomes.push_back(
      outcome("onednn", "", Activation::mxfp4, Format::mxfp4, Experiment::random,
              Unsupported{"libdnnl.so.2 is not here: apt-get install libdnnl2"}));
  report.outcomes.push_back(
      outcome("ggml", "2026.1", Activation::q8_0, Format::mxfp4, Experiment::wide,
              Failed{{ErrorKind::failed, "launch said \"no\", <b>twice</b>"}}));
  report.outcomes.back().note = "activations are Q8_0";
  report.outcomes.push_back(outcome("ggml", "2026.1", Activation::q8_0, Format::nvfp4,
                                    Experiment::pads,
                                    Crashed{11, std::nullopt, "killed by signal 11 (SIGSEGV)",
                                            "\x1b[31mred\x1b[0m\r\nlast | line\xff"}));
  report.outcomes.push_back(
      outcome("fake", "1", Activation::f16, Format::mxfp4, Experiment::canary,
              Crashed{std::nullopt, 0, "left with exit code 0 and no answer", ""}));
  report.outcomes.push_back(outcome("fake", "1", Activation::bf16, Format::mxfp4,
                                    Experiment::repeat,
                                    TimedOut{20.0, "no answer within 20 s", "still\tworking"}));
  return report;
}

}  // namespace nibble
