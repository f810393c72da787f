// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/admission/handshake.h"

#include <asio/error.hpp>
#include <utility>

#include "host/tcp/socket_error.h"
#include "host/tcp/stream.h"

namespace tw::host {
namespace {

bool is_closed(const std::string& why) {
  return why == in_words(asio::error::eof) || why == in_words(asio::error::connection_reset);
}

}  // namespace

Handshake::Handshake(Reception& reception, Frame hello, std::uint64_t nonce, Tell tell)
    : reception_(reception),
      hello_(std::move(hello)),
      dials_(true),
      nonce_(nonce),
      tell_(std::move(tell)),
      stage_(Stage::connecting) {}

// owners of control: see stream.h
Handshake::Handshake(Reception& reception, Frame hello, std::shared_ptr<Stream> control, Tell tell)
    : reception_(reception),
      hello_(std::move(hello)),
      dials_(false),
      nonce_(0),
      tell_(std::move(tell)),
      stage_(Stage::greeting),
      control_(std::move(control)) {
  control_->attach(this);
}

// owners: see stream.h
void Handshake::connected(Result<std::shared_ptr<Stream>> control) {
  if (stage_ != Stage::connecting) return;
  if (!control) return fail(Ending::lost, {control.error().message});
  control_ = std::move(control).value();
  stage_ = Stage::greeting;
  say(*control_, StreamKind::control, Verdict::greet);
  control_->send(hello_);
  control_->attach(this);
}

// owners: see stream.h
void Handshake::take_bulk(Result<std::shared_ptr<Stream>> bulk) {
  if (!admitted()) return;
  if (!bulk) return fail(Ending::lost, {"bulk stream: " + bulk.error().message});
  bulk_ = std::move(bulk).value();
  if (dials_) {
    say(*bulk_, StreamKind::bulk, Verdict::greet);
    bulk_->attach(this);
  } else {
    bulk_->attach(nullptr);
    open_if_complete();
  }
}

void Handshake::give_up(const std::string& why) {
  if (stage_ < Stage::leaving) fail(Ending::lost, {why});
}

void Handshake::drop() {
  if (control_) control_->close();
  if (bulk_) bulk_->close();
}

bool Handshake::expects(PeerId peer, std::uint64_t nonce) const {
  return !dials_ && admitted() && bulk_ == nullptr && peer_ == peer && nonce_ == nonce;
}

const std::string& Handshake::remote() const {
  static const std::string nobody;
  return control_ ? control_->remote() : nobody;
}

LinkBytes Handshake::bytes() const {
  LinkBytes bytes;
  if (control_) bytes += control_->bytes();
  if (bulk_) bytes += bulk_->bytes();
  return bytes;
}

void Handshake::on_frame(Stream& stream, Frame frame) {
  if (stage_ == Stage::hello) return hear_hello(frame);
  const auto greeting = decode_greeting(frame);
  if (!greeting) return fail(Ending::nonsense, {greeting.error().message});
  if (stage_ == Stage::greeting) return hear_greeting(greeting.value());
  if (stage_ == Stage::verdict) return hear_verdict(greeting.value());
  if (stage_ == Stage::bulk && &stream == bulk_.get()) return hear_bulk(greeting.value());
  fail(Ending::nonsense, {"sent a message before the link stood"});
}

void Handshake::on_end(Stream& stream, const std::string& why) {
  const bool said_nothing = dials_ && stage_ == Stage::greeting && stream.bytes().received == 0;
  if (said_nothing && is_closed(why))
    return fail(Ending::lost, {why + " without a word (a page, another service, or a peer that restarts)"});
  if (!stream.lacks_credential()) return fail(Ending::lost, {why});
  fail(dials_ ? Ending::refused_there : Ending::credential, {why, world::Refusal::Code::credential});
}

void Handshake::hear_greeting(const Greeting& greeting) {
  const bool control = greeting.kind == StreamKind::control;
  if (dials_ && (!control || greeting.nonce != nonce_))
    return fail(Ending::nonsense, {"answered another greeting"});
  peer_ = greeting.sender;
  nonce_ = greeting.nonce;
  if (!control) return tell_(News::brings_bulk);
  if (greeting.verdict != Verdict::greet) return heard_no(greeting);
  stage_ = Stage::hello;
}

void Handshake::hear_hello(const Frame& hello) {
  if (const auto refusal = reception_.admit(peer_, hello)) return turn_away(*refusal);
  their_hello_ = hello;
  if (dials_) {
    stage_ = Stage::bulk;
    say(*control_, StreamKind::control, Verdict::accept);
    control_->attach(nullptr);  // messages may follow as soon as the other side is open
    tell_(News::wants_bulk);
  } else {
    stage_ = Stage::verdict;
    say(*control_, StreamKind::control, Verdict::greet);
    control_->send(hello_);
    tell_(News::admitted);
  }
}

void Handshake::hear_verdict(const Greeting& greeting) {
  if (greeting.verdict != Verdict::accept) return heard_no(greeting);
  stage_ = Stage::bulk;
  open_if_complete();
}

void Handshake::hear_bulk(const Greeting& greeting) {
  if (greeting.verdict != Verdict::accept) return heard_no(greeting);
  bulk_->attach(nullptr);
  stage_ = Stage::open;
  tell_(News::open);
}

void Handshake::open_if_complete() {
  if (stage_ != Stage::bulk || bulk_ == nullptr) return;
  say(*bulk_, StreamKind::bulk, Verdict::accept);
  control_->attach(nullptr);
  stage_ = Stage::open;
  tell_(News::open);
}

void Handshake::heard_no(const Greeting& greeting) {
  switch (greeting.verdict) {
    case Verdict::refuse:
      return fail(Ending::refused_there, greeting.reason);
    case Verdict::duplicate:
      return fail(Ending::duplicate, greeting.reason);
    default:
      return fail(Ending::nonsense, {"spoke out of turn"});
  }
}

void Handshake::say(Stream& stream, StreamKind kind, Verdict verdict, world::Refusal reason) {
  stream.send(encode_greeting({kind, verdict, reception_.self(), nonce_, std::move(reason)}));
}

void Handshake::turn_away(const Refusal& refusal) {
  say(*control_, StreamKind::control, refusal.verdict, refusal.why);
  fail(refusal.verdict == Verdict::duplicate ? Ending::duplicate : Ending::refused_here, refusal.why);
}

void Handshake::fail(Ending ending, world::Refusal why) {
  if (admitted()) reception_.release(peer_);
  was_admitted_ = admitted();
  stage_ = Stage::leaving;
  ending_ = ending;
  why_ = std::move(why);
  if (bulk_) bulk_->close();
  if (control_) control_->finish([tell = tell_] { tell(News::left); });
  tell_(News::failed);
  if (!control_) tell_(News::left);
}

}  // namespace tw::host
