// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/stream.h"

#include <chrono>
#include <span>
#include <utility>

namespace tw::host {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFarewell = 2s;

// Frames before admission must be small: anybody can make this peer allocate them.
constexpr FrameLimits kGreetingLimits{wire::kMostGreetingBytes, wire::kMostGreetingBytes};

}  // namespace

// owner: see channel.h
Stream::Stream(Loop& loop, std::shared_ptr<Channel> channel)
    : loop_(loop), channel_(std::move(channel)), parser_(kGreetingLimits) {
  queue_.push_back({preface(), {}});
  queued_bytes_ = queue_.back().lengths.size();
}

void Stream::carry_bulk() {
  set_limits(FrameLimits{});
  channel_->prepare_for_bulk();
}

void Stream::attach(StreamUser* user) {
  user_ = user;
  if (state_ != State::open || user_ == nullptr) return;
  write();
  loop_.post([self = shared_from_this()] { self->deliver(); });
}

void Stream::deliver() {
  if (reading_) return;
  while (user_ != nullptr) {
    auto frame = parser_.next();
    if (!frame) return end(frame.error().message);
    if (!frame.value()) break;
    user_->on_frame(*this, *std::move(frame.value()));
  }
  if (user_ == nullptr) return;
  if (ending_) return end(*ending_);
  read();
}

void Stream::read() {
  const FrameParser::Room room = parser_.room();
  for (std::size_t i = 0; i < room.size(); ++i) room_[i] = asio::buffer(room[i].data(), room[i].size());
  reading_ = true;
  channel_->read_some(room_, [self = shared_from_this()](const std::error_code& error, std::size_t bytes) {
    self->on_read(error, bytes);
  });
}

void Stream::on_read(const std::error_code& error, std::size_t bytes) {
  reading_ = false;
  bytes_.received += bytes;
  if (state_ == State::closed) return;
  if (state_ == State::finishing) {
    parser_ = FrameParser(kGreetingLimits);
    if (!error) return read();
    ending_ = channel_->in_words(error);
    if (error != asio::error::eof || queue_.empty()) close();
    return;
  }
  parser_.filled(bytes);
  if (error) {
    error_ = error;
    ending_ = channel_->in_words(error);
    if (error == asio::error::eof && !parser_.between_frames()) *ending_ += " in the middle of a message";
  }
  deliver();
}

void Stream::send(Frame frame) {
  if (state_ != State::open) return;
  const FrameLengths lengths = lengths_of(frame);
  queued_bytes_ += lengths.size() + frame.size();
  queue_.push_back({lengths, std::move(frame)});
  write();
}

std::size_t Stream::gather() {
  std::size_t skip = front_written_;
  std::size_t parts = 0;
  for (const Outgoing& outgoing : queue_) {
    const std::array<std::span<const std::byte>, 3> spans{outgoing.lengths, outgoing.frame.head.bytes(),
                                                          outgoing.frame.payload.bytes()};
    if (parts + spans.size() > gathered_.size()) break;
    for (const auto& span : spans) {
      const std::size_t skipped = std::min(skip, span.size());
      skip -= skipped;
      if (skipped < span.size())
        gathered_[parts++] = asio::buffer(span.data() + skipped, span.size() - skipped);
    }
  }
  return parts;
}

void Stream::write() {
  if (writing_ || queue_.empty() || state_ == State::closed) return;
  const std::span<const asio::const_buffer> buffers(gathered_.data(), gather());
  writing_ = true;
  channel_->write_some(buffers, [self = shared_from_this()](const std::error_code& error, std::size_t bytes) {
    self->on_written(error, bytes);
  });
}

void Stream::drop_written(std::size_t bytes) {
  bytes_.sent += bytes;
  queued_bytes_ -= bytes;
  front_written_ += bytes;
  while (!queue_.empty()) {
    const std::size_t front = queue_.front().lengths.size() + queue_.front().frame.size();
    if (front_written_ < front) return;
    front_written_ -= front;
    queue_.pop_front();
  }
}

void Stream::on_written(const std::error_code& error, std::size_t bytes) {
  writing_ = false;
  if (state_ == State::closed) return;
  drop_written(bytes);
  if (error) {
    if (state_ == State::finishing) return close();
    error_ = error;
    if (user_ != nullptr) return end(channel_->in_words(error));
    ending_ = channel_->in_words(error);
    return;
  }
  write();
  if (state_ == State::finishing && queue_.empty()) return end_sending();
  if (user_ != nullptr) user_->on_room(*this);
}

void Stream::end(const std::string& why) {
  StreamUser* user = std::exchange(user_, nullptr);
  const std::string reason = why;  // may be ending_ itself
  close();
  user->on_end(*this, reason);
}

void Stream::end_sending() {
  if (ending_) return close();
  channel_->end_sending();
}

void Stream::finish(std::function<void()> done) {
  user_ = nullptr;
  on_finished_ = std::move(done);
  if (state_ == State::closed) return close();
  state_ = State::finishing;
  loop_.at(loop_.now() + kFarewell, [stream = weak_from_this()] {
    if (const auto self = stream.lock()) self->close();
  });
  if (!reading_) {
    parser_ = FrameParser(kGreetingLimits);
    read();
  }
  write();
  if (queue_.empty()) end_sending();
}

void Stream::close() {
  if (state_ != State::closed) acknowledged_ = channel_->acknowledged();
  state_ = State::closed;
  user_ = nullptr;
  channel_->close();
  if (on_finished_) loop_.post(std::exchange(on_finished_, nullptr));
}

}  // namespace tw::host
