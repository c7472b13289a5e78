// SPDX-License-Identifier: Apache-2.0
#include "probe/child_answer.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>

#include "report/outcome_json.h"

namespace nibble {
namespace {

using Clock = std::chrono::steady_clock;

// A grandchild can hold the pipes open when the child is gone, so its end is looked for this often.
constexpr int kLookForEndMs = 50;

enum class Ended { answered, too_long, closed, gone, timed_out, stopped };

struct Conversation {
  std::string answer;    // what came on the result channel
  std::string log_tail;  // the last kLogTailBytes of stdout and stderr
};

// Reads all that is there. False at the end of the stream.
template <class Take>
bool drain(int descriptor, Take take) {
  std::array<char, 65536> bytes;
  for (;;) {
    const auto count = ::read(descriptor, bytes.data(), bytes.size());
    if (count > 0) {
      if (!take(std::string_view(bytes.data(), static_cast<std::size_t>(count)))) return true;
    } else if (count == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
}

bool read_log(const ChildProcess& child, Conversation& conversation) {
  int rounds = 16;  // a child that floods its log must not keep the deadline from being looked at
  return drain(child.log_fd(), [&](std::string_view bytes) {
    auto& tail = conversation.log_tail;
    tail.append(bytes);
    if (tail.size() > kLogTailBytes) tail.erase(0, tail.size() - kLogTailBytes);
    return --rounds > 0;
  });
}

bool read_answer(const ChildProcess& child, Conversation& conversation) {
  return drain(child.result_fd(), [&](std::string_view bytes) {
    conversation.answer.append(bytes);
    return conversation.answer.size() <= kLongestAnswerBytes;
  });
}

Ended converse(const ChildProcess& child, double limit_s, int stop_fd, Conversation& conversation) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(limit_s);
  bool log_open = true;
  for (;;) {
    std::array<pollfd, 3> watched{pollfd{child.result_fd(), POLLIN, 0},
                                  pollfd{log_open ? child.log_fd() : -1, POLLIN, 0},
                                  pollfd{stop_fd, POLLIN, 0}};
    const double left_ms =
        std::chrono::duration<double, std::milli>(deadline - Clock::now()).count();
    ::poll(watched.data(), watched.size(),
           std::clamp(static_cast<int>(std::ceil(left_ms)), 0, kLookForEndMs));
    const bool had_ended =
        child.has_ended();  // before the reads: what it wrote is in the pipes by now
    if (log_open) log_open = read_log(child, conversation);
    const bool answer_open = read_answer(child, conversation);
    if (conversation.answer.size() > kLongestAnswerBytes) return Ended::too_long;
    if (conversation.answer.find('\n') != std::string::npos) return Ended::answered;
    if (watched[2].revents != 0) return Ended::stopped;
    if (had_ended) return Ended::gone;
    if (!answer_open) return Ended::closed;
    if (Clock::now() >= deadline) return Ended::timed_out;
  }
}

Verdict corrupt(const std::string& what) {
  return Failed{{ErrorKind::corrupt, "the child's answer cannot be used: " + what}};
}

std::string memory_note(const Case& the_case) {
  if (the_case.memory_limit_bytes <= 0) return "";
  return fmt::format(" (under a memory limit of {} bytes)", the_case.memory_limit_bytes);
}

Verdict crashed(const ProcessEnd& end, const Conversation& conversation, const Case& the_case) {
  Crashed verdict{end.signal, end.exit_code, {}, conversation.log_tail};
  if (end.signal) {
    const char* abbreviation = ::sigabbrev_np(*end.signal);
    verdict.why =
        fmt::format("ended by signal {} (SIG{})", *end.signal, abbreviation ? abbreviation : "?");
  } else {
    verdict.why = fmt::format("left with exit code {} and no answer", end.exit_code.value_or(-1));
  }
  if (!conversation.answer.empty()) {
    verdict.why +=
        fmt::format(" after {} bytes of an unfinished answer", conversation.answer.size());
  }
  verdict.why += memory_note(the_case);
  return verdict;
}

// The outcome in the line, if it is an answer to this case.
Result<Outcome> parse_answer(const std::string& answer, const std::string& nonce,
                             const Case& the_case) {
  const auto refuse = [](const std::string& what) { return fail(ErrorKind::corrupt, what); };
  const auto end = answer.find('\n');
  if (answer.compare(0, nonce.size() + 1, nonce + " ") != 0)
    return refuse("it does not repeat the case's number");
  if (end + 1 != answer.size())
    return refuse(fmt::format("{} bytes follow its line", answer.size() - end - 1));
  auto outcome =
      outcome_from_json(std::string_view(answer).substr(nonce.size() + 1, end - nonce.size() - 1));
  if (!outcome) return refuse(outcome.error().message);
  if (outcome->backend != the_case.backend || outcome->experiment != the_case.experiment ||
      outcome->seed != the_case.seed || outcome->problem != the_case.problem) {
    return refuse("it is about another case");
  }
  return outcome;
}

Verdict verdict_of_end(Ended ended, ChildProcess& child, const Conversation& conversation,
                       const Case& the_case, double grace_s) {
  switch (ended) {
    case Ended::too_long:
      child.end(0);
      return corrupt(fmt::format("more than {} bytes on the result channel", kLongestAnswerBytes));
    case Ended::timed_out:
      child.end(grace_s);
      return TimedOut{the_case.limit_s, fmt::format("no answer within {:g} s", the_case.limit_s),
                      conversation.log_tail};
    case Ended::closed:
      // Either it is about to end, or it goes on without a channel.
      if (const auto end = child.end(grace_s);
          end.exit_code || (end.signal && *end.signal != SIGTERM)) {
        return crashed(end, conversation, the_case);
      }
      return corrupt("the result channel was closed without one");
    default:
      return crashed(child.end(0), conversation, the_case);
  }
}

}  // namespace

Outcome blank_outcome(const Case& the_case) {
  Outcome outcome;
  outcome.backend = the_case.backend;
  outcome.experiment = the_case.experiment;
  outcome.problem = the_case.problem;
  outcome.seed = the_case.seed;
  return outcome;
}

bool is_ready(const ChildProcess& child) {
  Conversation stray;
  return !child.has_ended() && read_answer(child, stray) && stray.answer.empty();
}

ChildAnswer ask_child(ChildProcess& child, const Case& the_case, const std::string& nonce,
                      double grace_s, int stop_fd) {
  const auto started = Clock::now();
  ChildAnswer answer{blank_outcome(the_case), false, false};
  Conversation conversation;
  read_log(child, conversation);
  conversation.log_tail.clear();

  if (const auto sent = child.send(nonce + " " + case_to_json(the_case) + "\n");
      !sent && !child.has_ended()) {
    child.end(grace_s);
    answer.outcome.verdict = Failed{sent.error()};
    return answer;
  }
  const Ended ended = converse(child, the_case.limit_s, stop_fd, conversation);
  if (ended == Ended::stopped) {
    child.end(grace_s);
    answer.stopped = true;
  } else if (ended != Ended::answered) {
    answer.outcome.verdict = verdict_of_end(ended, child, conversation, the_case, grace_s);
  } else if (auto outcome = parse_answer(conversation.answer, nonce, the_case); outcome) {
    answer.outcome = std::move(*outcome);
    answer.child_is_well = !is_fault(answer.outcome.verdict);
    if (!answer.child_is_well) child.end(grace_s);
  } else {
    child.end(0);
    answer.outcome.verdict = corrupt(outcome.error().message);
  }
  answer.outcome.elapsed_s = std::chrono::duration<double>(Clock::now() - started).count();
  return answer;
}

Result<std::string> read_line(ChildProcess& child, double limit_s) {
  Conversation conversation;
  Case nothing;
  nothing.limit_s = limit_s;
  const Ended ended = converse(child, limit_s, -1, conversation);
  if (ended == Ended::answered)
    return conversation.answer.substr(0, conversation.answer.find('\n'));
  return fail(ErrorKind::failed, why(verdict_of_end(ended, child, conversation, nothing, 0)));
}

}  // namespace nibble
