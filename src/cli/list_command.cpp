// SPDX-License-Identifier: Apache-2.0
// `nibble list`: the names that flags, reports and rows use. It opens no library.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "backends/registry.h"
#include "cli/choice_flag.h"
#include "cli/command.h"
#include "cli/output_flags.h"
#include "core/experiment.h"
#include "reference/hypotheses.h"
#include "report/machine.h"

namespace nibble {
namespace {

enum class ListTopic : std::uint8_t { backends, experiments, formats, hypotheses };

}  // namespace

template <>
struct EnumNames<ListTopic> {
  static constexpr std::array table{
      std::pair{ListTopic::backends, std::string_view("backends")},
      std::pair{ListTopic::experiments, std::string_view("experiments")},
      std::pair{ListTopic::formats, std::string_view("formats")},
      std::pair{ListTopic::hypotheses, std::string_view("hypotheses")}};
};

namespace {

struct ListFlags {
  OutputFlags output;
  std::vector<ListTopic> topics;  // empty: all
};

const char* summary_of(Experiment experiment) {
  switch (experiment) {
    case Experiment::integer:
      return "every partial sum is an exact integer: bit equality, no tolerance";
    case Experiment::random:
      return "normal data quantized by rn: bound, noise and gain";
    case Experiment::wide:
      return "any codes, any valid scale bytes, any tensor scale: bound and gain";
    case Experiment::locate:
      return "scales coded by row and block, one-hot blocks and rows: layout faults";
    case Experiment::pads:
      return "pad bytes and row padding poisoned: the result must not change";
    case Experiment::canary:
      return "poisoned outputs and guard zones; inputs compared afterwards";
    case Experiment::contract:
      return "leaves out each argument that the contract calls optional";
    case Experiment::repeat:
      return "the same case many times, with other cases between";
    case Experiment::extremes:
      return "zero blocks, NaN scales, smallest and largest scales, M = 0, one block of K";
    case Experiment::edges:
      return "sizes round the tile and K residues: right or refused";
  }
  return "";
}

std::vector<ListEntry> entries_of(ListTopic topic) {
  std::vector<ListEntry> entries;
  const auto add = [&entries](std::string_view entry, std::string_view summary) {
    entries.push_back({std::string(entry), std::string(summary)});
  };
  switch (topic) {
    case ListTopic::backends:
      for (const auto& backend : backends()) add(backend->name(), backend->summary());
      break;
    case ListTopic::experiments:
      for (const auto& [experiment, text] : EnumNames<Experiment>::table)
        add(text, summary_of(experiment));
      break;
    case ListTopic::formats:
      add("nvfp4", "A or B: 16 codes (E2M1) share an E4M3 block scale; an fp32 tensor scale");
      add("mxfp4", "A or B: 32 codes (E2M1) share an E8M0 block scale");
      add("bf16", "A or output");
      add("f16", "A or output");
      add("q8_0", "A, of llama.cpp: 32 int8 share an f16 scale");
      add("f32", "output");
      break;
    case ListTopic::hypotheses:
      for (const HypothesisInfo& hypothesis : hypotheses()) add(hypothesis.name, hypothesis.advice);
      break;
  }
  return entries;
}

int run_list(const ListFlags& flags) {
  std::vector<ListSection> sections;
  for (const auto& [topic, title] : EnumNames<ListTopic>::table) {
    const bool wanted = flags.topics.empty() || std::find(flags.topics.begin(), flags.topics.end(),
                                                          topic) != flags.topics.end();
    if (wanted) sections.push_back({std::string(title), entries_of(topic)});
  }
  return print_result(flags.output.json ? write_list_json(sections)
                                        : write_list(sections, stdout_style(flags.output.colour)));
}

}  // namespace

void add_list_command(CLI::App& app, CommandContext& context) {
  CLI::App* list = app.add_subcommand(
      "list", "The names of backends, experiments, formats and fault hypotheses.");
  auto flags = std::make_shared<ListFlags>();
  add_choice_flag(*list, "topic", flags->topics, "what to print; everything where left out");
  add_output_flags(*list, flags->output, false);
  list->footer(
      "Examples:\n"
      "  nibble list\n"
      "  nibble list backends experiments\n"
      "  nibble list hypotheses --json | jq -r '.hypotheses[].name'");
  list->callback([flags, &context] { context.run = [flags] { return run_list(*flags); }; });
}

}  // namespace nibble
