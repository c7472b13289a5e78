// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "report/machine.h"
#include "report/summary.h"
#include "report/text.h"

namespace nibble {
namespace {

// Sections of "label  text", the labels of a section in one column, the texts wrapped beside them.
class SectionWriter {
 public:
  explicit SectionWriter(const TableStyle& style)
      : colour_(style.colour),
        width_(static_cast<std::size_t>(std::clamp(style.width, 40, 1000))) {}

  void add(const std::string& title, const std::vector<ListEntry>& entries) {
    if (!text_.empty()) text_ += '\n';
    text_ += colour_ ? "\x1b[1m" + title + "\x1b[0m\n" : title + "\n";
    std::size_t labels = 0;
    for (const ListEntry& entry : entries) labels = std::max(labels, columns_of(entry.name));
    const std::size_t before = kIndent + labels + kGap;
    const std::size_t text_columns = std::max(kLeastText, width_ - std::min(before, width_));
    for (const ListEntry& entry : entries) {
      text_ += std::string(kIndent, ' ') + pad_right(entry.name, labels + kGap);
      std::string separator;
      for (const std::string& line : wrap(entry.summary, text_columns)) {
        text_ += separator + line;
        separator = "\n" + std::string(before, ' ');
      }
      text_.erase(text_.find_last_not_of(' ') + 1);
      text_ += '\n';
    }
  }

  std::string take() { return std::move(text_); }

 private:
  static constexpr std::size_t kIndent = 2, kGap = 2, kLeastText = 20;

  bool colour_;
  std::size_t width_;
  std::string text_;
};

template <class T>
std::string joined(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) {
    if (!text.empty()) text += ", ";
    if constexpr (std::is_enum_v<T>)
      text += name(value);
    else
      text += sanitize(value);
  }
  return text;
}

std::string size_text(std::int64_t bytes) {
  if (bytes <= 0) return "unknown";
  if (bytes >= std::int64_t{1} << 30)
    return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
  return fmt::format("{:.0f} MiB", static_cast<double>(bytes) / (1 << 20));
}

std::vector<ListEntry> cpu_entries(const CpuInfo& cpu) {
  return {{"model", cpu.model.empty() ? "unknown" : sanitize(cpu.model)},
          {"usable", fmt::format("{} logical CPUs", cpu.logical_cpus)},
          {"last-level cache", size_text(cpu.last_level_cache_bytes)},
          {"memory", size_text(cpu.memory_bytes)},
          {"vector extensions",
           cpu.vector_extensions.empty() ? "none known" : joined(cpu.vector_extensions)},
          {"vector target", sanitize(cpu.dispatch_target)}};
}

std::vector<ListEntry> gpu_entries(const Environment& environment) {
  if (environment.gpus.empty()) return {{"none", sanitize(environment.no_gpu_reason)}};
  std::vector<ListEntry> entries;
  for (std::size_t i = 0; i < environment.gpus.size(); ++i) {
    const GpuInfo& gpu = environment.gpus[i];
    entries.push_back(
        {fmt::format("{}", i), fmt::format("{}, compute capability {}, {}, {}", sanitize(gpu.name),
                                           sanitize(gpu.compute_capability),
                                           size_text(gpu.memory_bytes), sanitize(gpu.uuid))});
  }
  return entries;
}

std::vector<ListEntry> library_entries(const std::vector<LibraryInfo>& libraries) {
  const auto version_of = [](const LibraryInfo& library) {
    return sanitize(library.version.value_or("version unknown"));
  };
  std::size_t versions = 0;
  for (const LibraryInfo& library : libraries)
    if (library.path) versions = std::max(versions, columns_of(version_of(library)));
  std::vector<ListEntry> entries;
  for (const LibraryInfo& library : libraries) {
    std::string text = library.path
                           ? pad_right(version_of(library), versions + 2) + sanitize(*library.path)
                           : "absent: " + sanitize(library.note);
    entries.push_back({sanitize(library.name), std::move(text)});
  }
  return entries;
}

// What `nibble probe` can judge here, backend by backend.
std::vector<ListEntry> allowed_entries(const Machine& machine) {
  std::vector<ListEntry> entries;
  for (const BackendInfo& backend : machine.backends) {
    std::string text;
    if (!backend.version) {
      text = "absent: " + sanitize(backend.why);
    } else {
      text =
          fmt::format("{}: ({}) x ({}) -> {}", sanitize(*backend.version),
                      joined(backend.activations), joined(backend.formats), joined(backend.outs));
      if (!backend.note.empty()) text += "; " + sanitize(backend.note);
    }
    entries.push_back({sanitize(backend.name), std::move(text)});
  }
  entries.push_back({"GPU", machine.environment.gpus.empty()
                                ? "no GPU here, and this build has no GPU backends"
                                : "this build has no GPU backends: their rows are absent"});
  return entries;
}

}  // namespace

std::string write_machine(const Machine& machine, const TableStyle& style) {
  SectionWriter writer(style);
  const std::string git = git_text(machine.git);
  writer.add("nibble", {{"version", machine.nibble_version + (git.empty() ? "" : ", git " + git)},
                        {"method version", fmt::format("{}", kMethodVersion)}});
  writer.add("CPU", cpu_entries(machine.environment.cpu));
  writer.add("GPUs", gpu_entries(machine.environment));
  writer.add("libraries", library_entries(machine.environment.libraries));
  writer.add("what that allows", allowed_entries(machine));
  return writer.take();
}

std::string write_list(const std::vector<ListSection>& sections, const TableStyle& style) {
  SectionWriter writer(style);
  for (const ListSection& section : sections) {
    std::vector<ListEntry> entries;
    for (const ListEntry& entry : section.entries)
      entries.push_back({sanitize(entry.name), sanitize(entry.summary)});
    writer.add(section.title, entries);
  }
  return writer.take();
}

}  // namespace nibble
