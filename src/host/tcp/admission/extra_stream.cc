// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/admission/extra_stream.h"

#include <utility>

#include "host/tcp/stream.h"

namespace tw::host {

// owners: see stream.h
ExtraStream::ExtraStream(const Tie& tie, std::shared_ptr<Stream> stream, Done done)
    : tie_(tie), stream_(std::move(stream)), done_(std::move(done)) {
  say(tie_.side == Side::dials ? Verdict::greet : Verdict::accept);
  stream_->attach(this);
}

void ExtraStream::say(Verdict verdict) {
  stream_->send(encode_greeting({StreamKind::bulk, verdict, tie_.self, tie_.nonce, {}}));
}

void ExtraStream::give_up() { decide(false); }

void ExtraStream::close() {
  done_ = nullptr;
  if (stream_) stream_->close();
}

LinkBytes ExtraStream::bytes() const { return stream_ ? stream_->bytes() : LinkBytes{}; }

void ExtraStream::on_frame(Stream&, Frame frame) {
  const auto greeting = decode_greeting(frame);
  const bool accepted = greeting.ok() && greeting.value().verdict == Verdict::accept;
  if (accepted && tie_.side == Side::dials) say(Verdict::accept);
  decide(accepted);
}

void ExtraStream::on_end(Stream&, const std::string&) { decide(false); }

void ExtraStream::decide(bool accepted) {
  if (!done_) return;
  if (accepted) {
    stream_->attach(nullptr);
  } else {
    stream_->close();
  }
  std::exchange(done_, nullptr)(accepted);
}

}  // namespace tw::host
