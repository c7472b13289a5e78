// SPDX-License-Identifier: Apache-2.0
#include "cpu/worker_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <system_error>

namespace nibble {

struct WorkerPool::Job {
  const std::function<void(std::int64_t)>& work;
  std::int64_t pieces;
  std::atomic<std::int64_t> next{0};

  void help() {
    for (std::int64_t piece = next++; piece < pieces; piece = next++) work(piece);
  }
};

namespace {

// try_lock of a mutex that its own thread holds is undefined, so callers within work() are told
// apart.
thread_local bool in_pool = false;

}  // namespace

int usable_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

WorkerPool& WorkerPool::shared() {
  static WorkerPool pool;
  return pool;
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (auto& helper : helpers_) helper.join();
}

void WorkerPool::serve(std::size_t index) {
  in_pool = true;
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stop_ || (job_ != nullptr && job_number_ != seen); });
    if (stop_) return;
    seen = job_number_;
    if (index >= job_helpers_) continue;
    Job& job = *job_;
    ++working_;
    lock.unlock();
    job.help();
    lock.lock();
    if (--working_ == 0) done_.notify_all();
  }
}

void WorkerPool::start_helpers(std::size_t count) {
  while (helpers_.size() < count) {
    try {
      helpers_.emplace_back(&WorkerPool::serve, this, helpers_.size());
    } catch (const std::system_error&) {
      return;  // no more threads to be had: fewer do the same work
    }
  }
}

void WorkerPool::run(int threads, std::int64_t pieces,
                     const std::function<void(std::int64_t)>& work) {
  const std::int64_t wanted =
      std::min<std::int64_t>(threads > 0 ? threads : usable_threads(), pieces);
  Job job{work, pieces};
  std::unique_lock<std::mutex> taken;
  if (wanted > 1 && !in_pool) taken = std::unique_lock(taken_, std::try_to_lock);
  if (!taken.owns_lock()) return job.help();

  {
    const std::lock_guard lock(mutex_);
    start_helpers(static_cast<std::size_t>(wanted - 1));
    job_ = &job;
    job_helpers_ = static_cast<std::size_t>(wanted - 1);
    ++job_number_;
  }
  wake_.notify_all();
  in_pool = true;
  job.help();
  in_pool = false;
  std::unique_lock lock(mutex_);
  job_ = nullptr;  // helpers that wake up late find nothing to do
  done_.wait(lock, [&] { return working_ == 0; });
}

}  // namespace nibble
