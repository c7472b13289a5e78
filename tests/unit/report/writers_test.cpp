// SPDX-License-Identifier: Apache-2.0
// Every format of one Report against its golden file, and what must hold of any report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "report/machine.h"
#include "report/text.h"
#include "report/write_report.h"
#include "support/golden.h"
#include "unit/report/sample_report.h"

namespace nibble {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string golden(const std::string& file) {
  return NIBBLE_SOURCE_DIR "/tests/unit/report/golden/" + file;
}

Machine sample_machine() {
  Machine machine;
  machine.nibble_version = "0.1.0";
  machine.git = sample_report().git;
  machine.environment = sample_report().environment;
  machine.backends = {
      {"cpu",
       "ours",
       "0.1.0",
       "",
       {Activation::nvfp4, Activation::bf16},
       {Format::nvfp4},
       {OutType::bf16, OutType::f32},
       ""},
      {"onednn", "oneDNN", std::nullopt, "libdnnl.so.2 is not here", {}, {}, {}, ""}};
  return machine;
}

std::vector<ListSection> sample_list() {
  return {{"backends", {{"cpu", "ours"}, {"openblas", "dequantizes, then sgemm"}}},
          {"formats", {{"nvfp4", "16 codes share a block scale"}}}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Golden, Table) {
  for (const int width : {60, 100, 200})
    expect_golden(golden("table_" + std::to_string(width) + ".txt"),
                  write_table(sample_report(), {width, false}));
  expect_golden(golden("table_colour.txt"), write_table(sample_report(), {100, true}));
}

TEST(Golden, Files) {
  const std::pair<const char*, ReportFormat> formats[] = {{"report.json", ReportFormat::json},
                                                          {"report.jsonl", ReportFormat::jsonl},
                                                          {"report.csv", ReportFormat::csv},
                                                          {"report.md", ReportFormat::md},
                                                          {"report.html", ReportFormat::html}};
  for (const auto& [file, format] : formats) {
    EXPECT_EQ(format_of_path(file), format);
    expect_golden(golden(file), write(sample_report(), format));
  }
}

TEST(Golden, MachineAndList) {
  expect_golden(golden("machine.txt"), write_machine(sample_machine(), {100, false}));
  expect_golden(golden("machine.json"), write_machine_json(sample_machine()));
  expect_golden(golden("list.txt"), write_list(sample_list(), {100, false}));
  expect_golden(golden("list.json"), write_list_json(sample_list()));
}

TEST(Table, KeepsToItsWidth) {
  for (int width = 60; width <= 200; ++width) {
    for (const std::string& line : lines_of(write_table(sample_report(), {width, false}))) {
      if (line.starts_with("  rerun")) continue;
      EXPECT_LE(columns_of(line), static_cast<std::size_t>(width)) << line;
      EXPECT_TRUE(line.empty() || line.back() != ' ') << line;
    }
  }
}

TEST(Table, ColourOnlyWhereAsked) {
  EXPECT_THAT(write_table(sample_report(), {100, false}), Not(HasSubstr("\x1b")));
  std::string coloured = write_table(sample_report(), {100, true});
  EXPECT_THAT(coloured, HasSubstr("\x1b[32mcorrect"));
  for (std::size_t escape; (escape = coloured.find('\x1b')) != std::string::npos;)
    coloured.erase(escape, coloured.find('m', escape) + 1 - escape);
  EXPECT_EQ(coloured, write_table(sample_report(), {100, false}));
}

TEST(Table, TheWorstVerdictOfARowWins) {
  // The sample's openblas row has an incorrect and a correct case.
  const std::string table = write_table(sample_report(), {100, false});
  EXPECT_THAT(table, HasSubstr("openblas 0.3.21  nvfp4 x nvfp4  incorrect"));
  EXPECT_THAT(table, Not(HasSubstr("openblas 0.3.21  nvfp4 x nvfp4  correct")));
}

// Named once, and again where lines stand between.
TEST(Table, AnImplementationIsNamedOnce) {
  Report report;
  const auto add = [&](Activation a, const Verdict& verdict) {
    Outcome outcome;
    outcome.backend = "cpu";
    outcome.problem.a = a;
    outcome.verdict = verdict;
    report.outcomes.push_back(outcome);
  };
  add(Activation::nvfp4, Correct{});
  add(Activation::mxfp4, Correct{});
  add(Activation::bf16, Failed{{ErrorKind::failed, "no"}});
  add(Activation::f16, Correct{});
  const auto lines = lines_of(write_table(report, {100, false}));
  EXPECT_TRUE(lines.at(1).starts_with("cpu             nvfp4 x nvfp4  correct"));
  EXPECT_TRUE(lines.at(2).starts_with("                mxfp4 x nvfp4  correct"));
  EXPECT_TRUE(lines.at(3).starts_with("                bf16 x nvfp4   failed"));
  EXPECT_TRUE(lines.at(4).starts_with("  failed      random"));
  EXPECT_TRUE(lines.at(5).starts_with("cpu             f16 x nvfp4    correct"));
}

TEST(Table, ACrashedCaseWithoutAVersionStaysInItsRow) {
  Report report = sample_report();
  report.outcomes = {report.outcomes[0], report.outcomes[0]};
  report.outcomes[0].version.clear();
  report.outcomes[0].verdict = Crashed{9, std::nullopt, "killed by signal 9 (SIGKILL)", ""};
  const std::string table = write_table(report, {100, false});
  EXPECT_THAT(table, HasSubstr("cpu 0.1.0       nvfp4 x nvfp4  crashed  fp32"));
  EXPECT_THAT(table, HasSubstr("    1/2\n"));
}

TEST(Table, AnAbsentLibraryIsOneRow) {
  Report report;
  for (const Activation a : {Activation::nvfp4, Activation::bf16, Activation::f16}) {
    Outcome outcome;
    outcome.backend = "onednn";
    outcome.problem.a = a;
    outcome.verdict = Unsupported{"not here"};
    report.outcomes.push_back(outcome);
  }
  EXPECT_THAT(write_table(report, {100, false}),
              HasSubstr("onednn          3 kinds   unsupported  not here\n"));
}

TEST(Table, AnEmptyReportSaysSo) {
  EXPECT_EQ(write_table(Report{}, {100, false}), "no case was run\n");
}

// Whatever a child, a file name or a library says: no control character but line ends.
TEST(Writers, NothingFromOutsideReachesATerminal) {
  std::string hostile =
      "\x1b]0;title\x07\x1b[2J\x1b[31m\x9b"
      "31m\x7f\xc2\x9b"
      "5n\xe2\x80\xae<script>|`\"',\r\n\t";
  hostile += '\0';
  Report report = sample_report();
  report.argv.push_back(hostile);
  report.git.sha = hostile;
  report.environment.cpu.model = report.environment.cpu.dispatch_target = hostile;
  report.environment.gpus[0].name = hostile;
  report.environment.libraries[0].version = hostile;
  report.environment.libraries[1].note = hostile;
  for (Outcome& outcome : report.outcomes) {
    outcome.backend = outcome.version = outcome.kernel = outcome.note = outcome.rerun = hostile;
    outcome.problem.source = hostile;
    if (auto* incorrect = std::get_if<Incorrect>(&outcome.verdict)) {
      incorrect->why = incorrect->accuracy.why_wrong = hostile;
      incorrect->diagnosis = Diagnosis{{hostile}, hostile};
    }
    if (auto* unsupported = std::get_if<Unsupported>(&outcome.verdict)) unsupported->why = hostile;
    if (auto* failed = std::get_if<Failed>(&outcome.verdict)) failed->error.message = hostile;
    if (auto* crashed = std::get_if<Crashed>(&outcome.verdict))
      crashed->why = crashed->log_tail = hostile;
  }
  for (const ReportFormat format : {ReportFormat::table, ReportFormat::json, ReportFormat::jsonl,
                                    ReportFormat::csv, ReportFormat::md, ReportFormat::html}) {
    std::string text = write(report, format);
    if (format == ReportFormat::csv) std::erase(text, '\r');
    std::string visible = text;
    std::erase(visible, '\n');
    EXPECT_EQ(sanitize(visible), visible) << static_cast<int>(format);
    if (format != ReportFormat::html) continue;
    EXPECT_THAT(text, Not(HasSubstr("<script")));
    EXPECT_THAT(text, HasSubstr("&lt;script&gt;|`&quot;&#39;,"));
  }
}

// A reader of RFC 4180, written apart from the writer.
std::vector<std::vector<std::string>> read_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1, std::vector<std::string>(1));
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string& cell = rows.back().back();
    if (quoted && text[i] == '"' && i + 1 < text.size() && text[i + 1] == '"')
      cell += text[i++];
    else if (text[i] == '"')
      quoted = !quoted;
    else if (!quoted && text[i] == ',')
      rows.back().emplace_back();
    else if (!quoted && text.compare(i, 2, "\r\n") == 0)
      ++i, rows.emplace_back(1);
    else
      cell += text[i];
  }
  rows.pop_back();
  return rows;
}

TEST(Csv, HasOneRowAnOutcomeAndTheSameColumnsInEach) {
  const auto rows = read_csv(write_csv(sample_report()));
  ASSERT_EQ(rows.size(), sample_report().outcomes.size() + 1);
  for (const auto& row : rows) EXPECT_EQ(row.size(), rows[0].size());
  const auto column = [&](const std::string& key) {
    return std::find(rows[0].begin(), rows[0].end(), key) - rows[0].begin();
  };
  EXPECT_EQ(rows[3][static_cast<std::size_t>(column("why"))],
            "row 0, column 17: got 1.5, expected 3 +- 0.000977");
  EXPECT_EQ(rows[6][static_cast<std::size_t>(column("why"))], "launch said \"no\", <b>twice</b>");
  EXPECT_EQ(rows[3][static_cast<std::size_t>(column("accuracy.first_mismatch.column"))], "17");
  EXPECT_EQ(rows[1][static_cast<std::size_t>(column("accuracy.first_mismatch.column"))], "");
  EXPECT_EQ(rows[2][static_cast<std::size_t>(column("timing.median_us"))], "12.5");
}

TEST(FormatOfPath, KnowsExtensionsAndNamesThem) {
  EXPECT_EQ(format_of_path("a/b.c/x.jsonl"), ReportFormat::jsonl);
  EXPECT_EQ(format_of_path("x.json"), ReportFormat::json);
  for (const char* path : {"x.xml", "x", "", ".json", "x.json.gz", "x.JSON"}) {
    const auto format = format_of_path(path);
    ASSERT_FALSE(format) << path;
    EXPECT_THAT(format.error().message, HasSubstr(".json, .jsonl, .csv, .md, .html"));
  }
}

}  // namespace
}  // namespace nibble
