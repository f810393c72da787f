// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/cipher_thread.h"

#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "base/check.h"

namespace tw::host {
namespace {

using namespace std::chrono_literals;

constexpr Duration kRateWindow = 50ms;

}  // namespace

CipherThread::CipherThread(Loop& loop, Use use)
    : loop_(loop), use_(use), has_cores_(std::thread::hardware_concurrency() > 2) {}

bool CipherThread::takes(std::size_t bytes) {
  if (use_ == Use::always) return bytes >= kWorthwhile;
  return has_cores_ && is_fast(bytes) && bytes >= kWorthwhile;
}

bool CipherThread::is_fast(std::size_t bytes) {
  bytes_ += bytes;
  const Instant now = loop_.now();
  if (now - since_ >= kRateWindow) {
    fast_ = static_cast<double>(bytes_) >= kFast * to_seconds(now - since_);
    since_ = now;
    bytes_ = 0;
  }
  return fast_;
}

void CipherThread::submit(std::function<void()> run, std::function<void()> done) {
  if (!thread_) {
    thread_ = std::make_unique<ThreadExecutor>(
        loop_, [](const std::string&) { TW_CHECK(!"encryption and decryption throw nothing"); });
  }
  thread_->submit({.run = std::move(run), .done = [done = std::move(done)](Duration) { done(); }});
}

}  // namespace tw::host
