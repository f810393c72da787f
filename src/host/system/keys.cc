// SPDX-License-Identifier: Apache-2.0
#include "host/system/keys.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <string>
#include <utility>

namespace tw::host {

struct Keys::Kernel : std::enable_shared_from_this<Keys::Kernel> {
  Kernel(Loop& loop, int file, std::function<void(std::string_view)> call_)
      : descriptor(loop.context()), call(std::move(call_)) {
    // Opened once more: asio makes a file non-blocking, and all who share an open one would see that.
    const std::string path = "/proc/self/fd/" + std::to_string(file);
    const int own = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (own < 0) return;
    std::error_code failed;
    descriptor.assign(own, failed);
    readable = !failed;
  }

  void wait() {
    if (!readable) return;
    descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                          [self = shared_from_this()](const std::error_code& error) {
                            if (!error && self->call) self->take();
                          });
  }

  void take() {
    std::array<char, 64> bytes{};
    const ssize_t count = ::read(descriptor.native_handle(), bytes.data(), bytes.size());
    readable = count > 0;
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
      readable = true;
      return wait();
    }
    call(std::string_view(bytes.data(), readable ? static_cast<std::size_t>(count) : 0));
    wait();
  }

  asio::posix::stream_descriptor descriptor;
  std::function<void(std::string_view)> call;
  bool readable = false;
};

Keys::Keys(Loop& loop, int file, std::function<void(std::string_view)> call)
    : kernel_(std::make_shared<Kernel>(loop, file, std::move(call))) {
  kernel_->wait();
}

Keys::~Keys() {
  kernel_->call = nullptr;
  kernel_->readable = false;
  std::error_code ignored;
  kernel_->descriptor.close(ignored);
}

}  // namespace tw::host
