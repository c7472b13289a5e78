// SPDX-License-Identifier: Apache-2.0
#include "probe/run_isolated.h"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <map>
#include <optional>
#include <random>

#include "probe/child_answer.h"

namespace nibble {
namespace {

// A child that is gone must be an error of write(), not the end of this process.
class IgnoredSigpipe {
 public:
  IgnoredSigpipe() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &ignore, &former_);
  }
  ~IgnoredSigpipe() { ::sigaction(SIGPIPE, &former_, nullptr); }
  IgnoredSigpipe(const IgnoredSigpipe&) = delete;
  IgnoredSigpipe& operator=(const IgnoredSigpipe&) = delete;

 private:
  struct sigaction former_ {};
};

struct Explain {
  const std::string& what;
  void operator()(Correct&) const {}
  void operator()(Failed& verdict) const { add(verdict.error.message); }
  template <class Verdict>
  void operator()(Verdict& verdict) const {
    add(verdict.why);
  }
  void add(std::string& why) const { why += why.empty() ? what : "; " + what; }
};

class IsolatedRunner {
 public:
  explicit IsolatedRunner(const IsolationOptions& options) : options_(options) {}

  // nullopt: stopped.
  std::optional<Outcome> run(const Case& the_case) {
    if (child_ && (options_.child_per_case || child_backend_ != the_case.backend)) leave_child();
    const std::string last = last_case_;
    const bool spoiled = child_ && !is_ready(*child_);
    if (spoiled) leave_child();
    auto answer = ask(the_case);
    if (answer && is_fault(answer->verdict) && !last.empty() && !spoiled)
      answer = confirm(the_case, last, std::move(*answer));
    if (!answer) return std::nullopt;
    auto& version = versions_[the_case.backend];
    if (!answer->version.empty()) version = answer->version;
    answer->version = version;
    answer->rerun = rerun_command(the_case);
    if (spoiled) {
      answer->note += fmt::format("{}the process of {} ended or wrote on after its answer",
                                  answer->note.empty() ? "" : "; ", last);
    }
    return answer;
  }

 private:
  std::optional<Outcome> ask(const Case& the_case) {
    if (!child_) {
      auto started = ChildProcess::start(options_.worker);
      if (!started) {
        Outcome outcome = blank_outcome(the_case);
        outcome.verdict = Failed{started.error()};
        return outcome;
      }
      child_.emplace(std::move(*started));
      child_backend_ = the_case.backend;
    }
    auto answer = ask_child(*child_, the_case, next_nonce(), options_.grace_s, options_.stop_fd);
    if (answer.child_is_well) {
      last_case_ = case_name(the_case);
    } else {
      leave_child();
    }
    if (answer.stopped) return std::nullopt;
    return std::move(answer.outcome);
  }

  // A bad answer of a child that had run `last` before: is it the case's own fault, or what was
  // left behind?
  std::optional<Outcome> confirm(const Case& the_case, const std::string& last, Outcome first) {
    auto alone = ask(the_case);
    if (!alone || is_fault(alone->verdict)) return alone;
    std::visit(
        Explain{fmt::format("only after {} had run in the same process; in a fresh one it is {}",
                            last, verdict_name(alone->verdict))},
        first.verdict);
    leave_child();
    return first;
  }

  void leave_child() {
    child_.reset();
    last_case_.clear();
  }

  std::string next_nonce() { return fmt::format("{}-{:08x}", ++count_, random_()); }

  const IsolationOptions& options_;
  std::optional<ChildProcess> child_;
  std::string child_backend_,
      last_case_;  // last_case_: what the living child ran last; empty while it is fresh
  std::map<std::string, std::string> versions_;
  std::random_device random_;
  std::int64_t count_ = 0;
};

}  // namespace

IsolatedRun run_isolated(std::span<const Case> cases, const IsolationOptions& options) {
  const IgnoredSigpipe ignored;
  IsolatedRunner runner(options);
  IsolatedRun run;
  for (const auto& each : cases) {
    if (options.on_start) options.on_start(each);
    auto outcome = runner.run(each);
    if (!outcome) {
      run.stopped = true;
      break;
    }
    run.outcomes.push_back(std::move(*outcome));
    if (options.on_outcome) options.on_outcome(run.outcomes.back());
  }
  return run;
}

}  // namespace nibble
