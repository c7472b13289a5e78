// SPDX-License-Identifier: Apache-2.0
#include "cli/output_flags.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "cli/choice_flag.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "report/outcome_json.h"

namespace nibble {
namespace {

std::string errno_text() { return std::strerror(errno); }

Status write_all(int descriptor, const std::string& path, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return fail(ErrorKind::io, "cannot write " + path + ": " + errno_text());
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

std::filesystem::path folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? std::filesystem::path(".") : folder;
}

// A device, a pipe or a link is written in place: renaming over it would replace it.
bool writes_in_place(const std::string& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

Status write_in_place(const std::string& path, std::string_view text) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) return fail(ErrorKind::io, "cannot write " + path + ": " + errno_text());
  Status status = write_all(descriptor, path, text);
  if (::close(descriptor) != 0 && status)
    status = fail(ErrorKind::io, "cannot write " + path + ": " + errno_text());
  return status;
}

bool environment_has(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

void add_output_flags(CLI::App& app, OutputFlags& flags, bool files) {
  app.add_flag("--json", flags.json, "print JSON on stdout instead of the table");
  if (files) {
    app.add_option("--output", flags.outputs,
                   "also write FILE (.json .jsonl .csv .md .html); repeatable")
        ->type_name("FILE")
        ->allow_extra_args(false);
    app.add_flag("--quiet", flags.quiet, "no progress on stderr");
  }
  add_choice_flag(app, "--color", flags.colour, "colour of the table (NO_COLOR is respected)");
}

Status check_outputs(const OutputFlags& flags) {
  for (const std::string& path : flags.outputs) {
    const auto format = format_of_path(path);
    if (!format) return fail(ErrorKind::invalid_argument, "--output: " + format.error().message);
    const std::string folder = folder_of(path).string();
    if (::access(folder.c_str(), W_OK) != 0)
      return fail(ErrorKind::io, "--output: cannot write in " + folder + ": " + errno_text());
    if (std::filesystem::is_directory(path))
      return fail(ErrorKind::io, "--output: " + path + " is a folder");
  }
  return {};
}

Status write_file(const std::string& path, std::string_view text) {
  if (writes_in_place(path)) return write_in_place(path, text);
  const std::string temporary = path + "." + std::to_string(::getpid()) + ".tmp";
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0)
    return fail(ErrorKind::io, "cannot create " + temporary + ": " + errno_text());
  Status status = write_all(descriptor, path, text);
  if (::close(descriptor) != 0 && status)
    status = fail(ErrorKind::io, "cannot write " + path + ": " + errno_text());
  if (status && ::rename(temporary.c_str(), path.c_str()) != 0)
    status = fail(ErrorKind::io, "cannot write " + path + ": " + errno_text());
  if (!status) ::unlink(temporary.c_str());
  return status;
}

Status write_outputs(const Report& report, const OutputFlags& flags) {
  std::string failures;
  const auto note = [&failures](const Status& status) {
    if (status) return;
    if (!failures.empty()) failures += "; ";
    failures += status.error().message;
  };
  for (const std::string& path : flags.outputs) {
    const auto format = format_of_path(path);
    if (format)
      note(write_file(path, write(report, *format)));
    else
      note(tl::unexpected(format.error()));
  }
  const ReportFormat format = flags.json ? ReportFormat::json : ReportFormat::table;
  note(write_all(STDOUT_FILENO, "stdout", write(report, format, stdout_style(flags.colour))));
  if (failures.empty()) return {};
  return fail(ErrorKind::io, failures);
}

OutcomeStream::OutcomeStream(OutcomeStream&& other) noexcept
    : files_(std::exchange(other.files_, {})) {}

OutcomeStream::~OutcomeStream() {
  for (const File& file : files_) ::close(file.descriptor);
}

Result<OutcomeStream> OutcomeStream::open(const OutputFlags& flags, const Report& header) {
  Report partial = header;
  partial.partial = true;
  partial.outcomes.clear();
  OutcomeStream stream;
  for (const std::string& path : flags.outputs) {
    if (format_of_path(path) != ReportFormat::jsonl || writes_in_place(path)) continue;
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor < 0) return fail(ErrorKind::io, "cannot write " + path + ": " + errno_text());
    stream.files_.push_back({path, descriptor});
    if (auto status = write_all(descriptor, path, write_jsonl(partial)); !status)
      return tl::unexpected(status.error());
  }
  return stream;
}

Status OutcomeStream::add(const Outcome& outcome) {
  if (files_.empty()) return {};
  const std::string line = outcome_to_json(outcome) + "\n";
  for (const File& file : files_) {
    if (auto status = write_all(file.descriptor, file.path, line); !status) return status;
  }
  return {};
}

int print_result(std::string_view text) {
  if (const Status status = write_all(STDOUT_FILENO, "stdout", text); !status)
    return usage_error(status.error().message);
  return kExitRight;
}

TableStyle stdout_style(ColourMode mode) {
  TableStyle style;
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  style.width = terminal_columns(STDOUT_FILENO, style.width);
  const char* kind = std::getenv("TERM");
  const bool able = terminal && kind != nullptr && std::strcmp(kind, "dumb") != 0;
  style.colour = mode == ColourMode::always ||
                 (mode == ColourMode::automatic && able && !environment_has("NO_COLOR"));
  return style;
}

int exit_code_of(const Report& report, bool interrupted) {
  if (interrupted) return kExitInterrupted;
  const auto& outcomes = report.outcomes;
  if (std::any_of(outcomes.begin(), outcomes.end(),
                  [](const Outcome& outcome) { return is_fault(outcome.verdict); }))
    return kExitFault;
  if (std::all_of(outcomes.begin(), outcomes.end(), [](const Outcome& outcome) {
        return std::holds_alternative<Unsupported>(outcome.verdict);
      }))
    return kExitNothing;
  return kExitRight;
}

}  // namespace nibble
