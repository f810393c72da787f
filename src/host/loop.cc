// SPDX-License-Identifier: Apache-2.0
#include "host/loop.h"

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <utility>

#include "host/system/early_signals.h"

namespace tw::host {

struct Loop::Kernel {
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  asio::signal_set signals{context};
  std::function<void(int)> on_signal;

  void wait_for_signal() {
    signals.async_wait([this](const std::error_code& error, int signal) {
      if (error) return;
      on_signal(signal);
      wait_for_signal();
    });
  }
};

Loop::Loop() : kernel_(std::make_unique<Kernel>()) {}

Loop::~Loop() = default;

Instant Loop::now() {
  return Instant(std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

std::int64_t Loop::unix_nanos() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<Duration>(since_1970).count();
}

void Loop::at(Instant when, std::function<void()> call) {
  if (when == kNever) return;
  const std::chrono::steady_clock::time_point expiry(when.time_since_epoch());
  auto timer = std::make_unique<asio::steady_timer>(kernel_->context, expiry);
  asio::steady_timer& armed = *timer;
  armed.async_wait([timer = std::move(timer), call = std::move(call)](const std::error_code& error) {
    if (!error) call();
  });
}

void Loop::run() {
  kernel_->context.run();
  kernel_->context.restart();
}

bool Loop::run_until(const std::function<bool()>& done, Duration limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (kernel_->context.run_one_until(deadline) == 0) {
      kernel_->context.restart();
      return done();
    }
  }
  return true;
}

void Loop::stop() { kernel_->context.stop(); }

void Loop::post(std::function<void()> call) { asio::post(kernel_->context, std::move(call)); }

void Loop::on_signal(std::function<void(int signal)> call, std::initializer_list<int> signals) {
  const bool waits = static_cast<bool>(std::exchange(kernel_->on_signal, std::move(call)));
  for (const int signal : signals) kernel_->signals.add(signal);
  if (!waits) kernel_->wait_for_signal();
  for (const int early : take_early_signals()) post([this, early] { kernel_->on_signal(early); });
}

asio::io_context& Loop::context() { return kernel_->context; }

}  // namespace tw::host
