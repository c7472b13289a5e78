// SPDX-License-Identifier: Apache-2.0
// The one list of fields of each struct that a report holds. JSON, CSV and HTML read these lists,
// so a field added here appears in all of them; names carry their units.
#pragma once

#include <concepts>
#include <type_traits>

#include "core/report.h"
#include "report/outcome_record.h"

namespace nibble {

// visit_fields(value, field) calls field("key", member) for each member, in the order of the files.
// `T` is the struct or the struct const, so that one list serves reading and writing.
template <class T, class S>
concept MaybeConst = std::same_as<std::remove_const_t<T>, S>;

template <MaybeConst<GemmProblem> T, class F>
void visit_fields(T& problem, F&& field) {
  field("m", problem.shape.m);
  field("n", problem.shape.n);
  field("k", problem.shape.k);
  field("a", problem.a);
  field("b", problem.b);
  field("out", problem.out);
  field("a_scales", problem.a_scales);
  field("b_scales", problem.b_scales);
  field("groups", problem.groups);
  field("source", problem.source);
}

template <MaybeConst<Mismatch> T, class F>
void visit_fields(T& mismatch, F&& field) {
  field("row", mismatch.row);
  field("column", mismatch.column);
  field("value", mismatch.value);
  field("expected", mismatch.expected);
  field("bound", mismatch.bound);
}

template <MaybeConst<Accuracy> T, class F>
void visit_fields(T& accuracy, F&& field) {
  field("class", accuracy.accumulation);
  field("worst_fraction_of_bound", accuracy.worst_fraction_of_bound);
  field("noise", accuracy.noise);
  field("noise_limit", accuracy.noise_limit);
  field("gain", accuracy.gain);
  field("gain_tolerance", accuracy.gain_tolerance);
  field("signed_error", accuracy.signed_error);
  field("checked", accuracy.checked);
  field("wrong", accuracy.wrong);
  field("outside_fp32", accuracy.outside_fp32);
  field("flushed", accuracy.flushed);
  field("ulp_histogram", accuracy.ulp_histogram);
  field("first_mismatch", accuracy.first_mismatch);
  field("why_wrong", accuracy.why_wrong);
}

template <MaybeConst<OutputStats> T, class F>
void visit_fields(T& stats, F&& field) {
  field("all_zeros", stats.all_zeros);
  field("abs_max", stats.abs_max);
  field("abs_mean", stats.abs_mean);
  field("nan", stats.nan);
}

template <MaybeConst<Timing> T, class F>
void visit_fields(T& timing, F&& field) {
  field("median_us", timing.median_us);
  field("q1_us", timing.q1_us);
  field("q3_us", timing.q3_us);
  field("samples", timing.samples);
  field("stopped_by", timing.stopped_by);
}

template <MaybeConst<OutcomeRecord> T, class F>
void visit_fields(T& record, F&& field) {
  field("backend", record.backend);
  field("version", record.version);
  field("kernel", record.kernel);
  field("experiment", record.experiment);
  field("problem", record.problem);
  field("seed", record.seed);
  field("verdict", record.verdict);
  field("why", record.why);
  field("accuracy", record.accuracy);
  field("looks_like", record.looks_like);
  field("advice", record.advice);
  field("stats", record.stats);
  field("timing", record.timing);
  field("roofline", record.roofline);
  field("error_kind", record.error_kind);
  field("signal", record.signal);
  field("exit_code", record.exit_code);
  field("limit_s", record.limit_s);
  field("log_tail", record.log_tail);
  field("note", record.note);
  field("rerun", record.rerun);
  field("elapsed_s", record.elapsed_s);
}

template <MaybeConst<CpuInfo> T, class F>
void visit_fields(T& cpu, F&& field) {
  field("model", cpu.model);
  field("logical_cpus", cpu.logical_cpus);
  field("last_level_cache_bytes", cpu.last_level_cache_bytes);
  field("memory_bytes", cpu.memory_bytes);
  field("vector_extensions", cpu.vector_extensions);
  field("dispatch_target", cpu.dispatch_target);
}

template <MaybeConst<GpuInfo> T, class F>
void visit_fields(T& gpu, F&& field) {
  field("name", gpu.name);
  field("uuid", gpu.uuid);
  field("compute_capability", gpu.compute_capability);
  field("memory_bytes", gpu.memory_bytes);
}

template <MaybeConst<LibraryInfo> T, class F>
void visit_fields(T& library, F&& field) {
  field("name", library.name);
  field("version", library.version);
  field("path", library.path);
  field("note", library.note);
}

template <MaybeConst<Environment> T, class F>
void visit_fields(T& environment, F&& field) {
  field("cpu", environment.cpu);
  field("gpus", environment.gpus);
  field("no_gpu_reason", environment.no_gpu_reason);
  field("libraries", environment.libraries);
}

template <MaybeConst<GitState> T, class F>
void visit_fields(T& git, F&& field) {
  field("sha", git.sha);
  field("dirty", git.dirty);
}

// The report without its outcomes: each format holds those in its own way.
template <MaybeConst<Report> T, class F>
void visit_fields(T& report, F&& field) {
  field("argv", report.argv);
  field("git", report.git);
  field("method_version", report.method_version);
  field("partial", report.partial);
  field("environment", report.environment);
}

namespace detail {
struct IgnoreField {
  template <class T>
  void operator()(const char*, T&) const {}
};
}  // namespace detail

template <class T>
concept HasFields = requires(T& value) {
  visit_fields(value, detail::IgnoreField{});
};

template <class E>
concept HasNames = requires {
  EnumNames<E>::table;
};

inline constexpr const char* kReportSchema = "nibble.report/1";

}  // namespace nibble
