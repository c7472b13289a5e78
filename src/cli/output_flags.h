// SPDX-License-Identifier: Apache-2.0
// The flags that every subcommand with a result shares, and the sinks that they name: stdout holds
// the result, files are written besides.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/enum_names.h"
#include "core/error.h"
#include "core/report.h"
#include "report/write_report.h"

namespace CLI {
class App;
}

namespace nibble {

enum class ColourMode : std::uint8_t { automatic, always, never };

template <>
struct EnumNames<ColourMode> {
  static constexpr std::array table{std::pair{ColourMode::automatic, std::string_view("auto")},
                                    std::pair{ColourMode::always, std::string_view("always")},
                                    std::pair{ColourMode::never, std::string_view("never")}};
};

struct OutputFlags {
  bool json = false;                 // JSON instead of the table on stdout
  std::vector<std::string> outputs;  // files; the extension names the format
  bool quiet = false;                // no progress on stderr
  ColourMode colour = ColourMode::automatic;
};

// Adds --json, --color, and where `files`: --output and --quiet. `flags` must outlive the parse.
void add_output_flags(CLI::App& app, OutputFlags& flags, bool files = true);

// Before work starts: an extension that names no format is invalid_argument; a folder that does not
// exist or cannot be written is io.
Status check_outputs(const OutputFlags& flags);

// Every file, then stdout. All sinks are tried; the error names each that failed.
Status write_outputs(const Report& report, const OutputFlags& flags);

// The .jsonl outputs while a run goes on: a header that says `partial`, then each outcome as it
// comes, flushed, so that whatever ends the run, what was done is there. write_outputs() replaces
// them by the whole.
class OutcomeStream {
 public:
  static Result<OutcomeStream> open(const OutputFlags& flags, const Report& header);
  Status add(const Outcome& outcome);

  OutcomeStream(OutcomeStream&& other) noexcept;
  OutcomeStream& operator=(OutcomeStream&&) = delete;
  ~OutcomeStream();

 private:
  struct File {
    std::string path;
    int descriptor = -1;
  };
  OutcomeStream() = default;
  std::vector<File> files_;
};

// Written beside `path` and renamed: a reader sees the old file or the whole new one.
Status write_file(const std::string& path, std::string_view text);

// Text on stdout; the exit code: right, or usage with a line on stderr where it cannot be written.
int print_result(std::string_view text);

// Of stdout: its width (100 where it is no terminal), and colour by `mode`, NO_COLOR and TERM.
TableStyle stdout_style(ColourMode mode);

// 130 where `interrupted`, else 1 where a verdict is a fault, 3 where every one is unsupported (or
// there is none), else 0.
int exit_code_of(const Report& report, bool interrupted);

}  // namespace nibble
