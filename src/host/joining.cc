// SPDX-License-Identifier: Apache-2.0
#include "host/joining.h"

#include <utility>

#include "host/stream.h"

namespace tw {

// owners: see stream.h
Joining::Joining(PeerId self, std::uint64_t nonce, std::shared_ptr<Stream> stream, Done done)
    : stream_(std::move(stream)), done_(std::move(done)) {
  stream_->send(encode_greeting({StreamKind::bulk, Verdict::greet, self, nonce, {}}));
  stream_->attach(this);
}

void Joining::give_up() { decide(false); }

void Joining::close() {
  done_ = nullptr;
  if (stream_) stream_->close();
}

LinkBytes Joining::bytes() const { return stream_ ? stream_->bytes() : LinkBytes{}; }

void Joining::on_frame(Stream&, Frame frame) {
  const auto greeting = decode_greeting(frame);
  decide(greeting.ok() && greeting.value().verdict == Verdict::accept);
}

void Joining::on_end(Stream&, const std::string&) { decide(false); }

void Joining::decide(bool accepted) {
  if (!done_) return;
  if (accepted) {
    stream_->attach(nullptr);
  } else {
    stream_->close();
  }
  std::exchange(done_, nullptr)(accepted);
}

}  // namespace tw
