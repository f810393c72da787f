// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/channel_tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "host/identity/holder.h"
#include "host/identity/tls.h"
#include "host/loop.h"
#include "host/tcp/cipher_thread.h"
#include "host/tcp/framing.h"
#include "host/tcp/socket_error.h"
#include "wire/limits.h"

namespace tw::host {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFarewell = 2s;
constexpr std::size_t kRecordBytes = 16 << 10;  // of plain bytes, the most that TLS allows

// Bytes encrypted before one send, and bytes of one read: large enough to make system calls cheap, small
// enough for the second-level cache.
constexpr std::size_t kSendBytes = 128 << 10;
constexpr std::size_t kReceiveBytes = 128 << 10;
constexpr std::size_t kGreetingBytes = 20 << 10;  // before the link is open: room for one record

constexpr std::string_view kPlainBegin = "TWND";  // of a Preface

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

/// What OpenSSL said last, in words.
std::string last_trouble() {
  const unsigned long code = ERR_peek_last_error();
  const char* const reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
  return fmt::format("TLS failed: {}", reason != nullptr ? reason : "no reason given");
}

/// Encrypted bytes between OpenSSL and the socket, in both directions. OpenSSL sees them through a BIO.
struct Wire {
  std::vector<std::byte> arrived;
  std::size_t begin = 0, end = 0;  // of what OpenSSL did not take yet, in arrived
  std::vector<std::byte> leaving;  // OpenSSL appends
  bool saw_first = false;
  bool plain = false;  // the first bytes were those of a peer without TLS
  bool http = false;   // or of a web server without TLS

  bool begins_with(std::string_view text) const {
    return end >= text.size() && std::memcmp(arrived.data(), text.data(), text.size()) == 0;
  }
};

int wire_read(BIO* bio, char* to, int size) {
  Wire& wire = *static_cast<Wire*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const std::size_t bytes = std::min(static_cast<std::size_t>(size), wire.end - wire.begin);
  if (bytes == 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  std::memcpy(to, &wire.arrived[wire.begin], bytes);
  wire.begin += bytes;
  return static_cast<int>(bytes);
}

int wire_write(BIO* bio, const char* from, int size) {
  Wire& wire = *static_cast<Wire*>(BIO_get_data(bio));
  const auto bytes = std::as_bytes(std::span(from, static_cast<std::size_t>(size)));
  wire.leaving.insert(wire.leaving.end(), bytes.begin(), bytes.end());
  return size;
}

long wire_control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO* bio_over(Wire& wire) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "wire");
    BIO_meth_set_read(made, wire_read);
    BIO_meth_set_write(made, wire_write);
    BIO_meth_set_ctrl(made, wire_control);
    return made;
  }();
  BIO* const bio = BIO_new(method);
  TW_CHECK(bio != nullptr);
  BIO_set_data(bio, &wire);
  BIO_set_init(bio, 1);
  return bio;
}

// owners: the Stream and each operation under way, see channel_tls.h
class TlsChannel final : public Channel, public std::enable_shared_from_this<TlsChannel> {
 public:
  TlsChannel(Loop& loop, const Tls& tls, asio::ip::tcp::socket socket, Side side)
      : Channel(socket), loop_(loop), tls_(tls), socket_(std::move(socket)), ssl_(SSL_new(tls.context())) {
    TW_CHECK(ssl_ != nullptr);
    BIO* const bio = bio_over(wire_);
    SSL_set_bio(ssl_.get(), bio, bio);
    if (side == Side::dials) {
      SSL_set_connect_state(ssl_.get());
    } else {
      SSL_set_accept_state(ssl_.get());
    }
  }

  void read_some(std::span<const asio::mutable_buffer> to, Done done) override {
    reading_ = Reading{to, std::move(done)};
    loop_.post([self = shared_from_this()] { self->go_on(); });
  }

  void write_some(std::span<const asio::const_buffer> from, Done done) override {
    writing_ = Writing{from, std::move(done), 0};
    loop_.post([self = shared_from_this()] { self->go_on(); });
  }

  void end_sending() override {
    if (waits_for_cipher([self = shared_from_this()] { self->end_sending(); })) return;
    end_after_what_leaves();
    if (stage_ == Stage::verdict || stage_ == Stage::open) SSL_shutdown(ssl_.get());
    send();
    if (!sending()) shut_down();
  }

  /// Bytes may be on their way to or from the user's buffers on the other thread: then once it is done.
  void close() override {
    if (waits_for_cipher([self = shared_from_this()] { self->close(); })) return;
    release_guard();
    std::error_code ignored;  // close gives the descriptor back whatever it reports
    socket_.close(ignored);
    if (stage_ == Stage::closed) return;
    stage_ = Stage::closed;
    // What is waited for holds the user, who holds this channel: a loop that ends first must let go of both.
    loop_.post(
        [reading = std::exchange(reading_, std::nullopt), writing = std::exchange(writing_, std::nullopt)] {
          if (reading) reading->done(asio::error::operation_aborted, 0);
          if (writing) writing->done(asio::error::operation_aborted, 0);
        });
  }

  std::string in_words(const std::error_code& error) const override {
    return why_.empty() ? host::in_words(error) : why_;
  }

  bool lacks_credential() const override { return lacks_credential_; }

 private:
  enum class Stage {
    handshake,
    verdict,  ///< this side is content; the other's verdict is awaited
    open,
    parting,  ///< the last word is said; failed when the other side has ended
    failed,
    closed,
  };

  /// State of this side's output.
  enum class Outgoing {
    idle,
    sending,
    ending,        ///< nothing is with the kernel; no byte will follow those that wait
    sending_last,  ///< no byte will follow those that wait or are with the kernel
  };

  /// State of this side's input.
  enum class Incoming {
    idle,
    wanted,  ///< OpenSSL needs some
    receiving,
  };

  struct Reading {
    std::span<const asio::mutable_buffer> to;
    Done done;
  };

  struct Writing {
    std::span<const asio::const_buffer> from;
    Done done;
    std::size_t taken;  // plain bytes that are encrypted and on their way
  };

  /// What came of the bytes that were there.
  struct Decrypted {
    std::size_t bytes = 0;
    int error = SSL_ERROR_NONE;
    std::string trouble;
  };

  /// The connection, while the other thread has it. A loop that ends first lets go of what waits for it.
  class Loan {
   public:
    explicit Loan(TlsChannel& channel) : channel_(channel.shared_from_this()) {}

    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

    ~Loan() {
      if (!is_back_) channel_->forget();
    }

    TlsChannel& end() {
      is_back_ = true;
      return *channel_;
    }

   private:
    std::shared_ptr<TlsChannel> channel_;  // owners: as of a handler
    bool is_back_ = false;
  };

  // ---- on the loop thread, or on that of the cipher: then nothing else of this object is touched meanwhile

  /// True while the other thread has the connection: this is called once it gives it back.
  bool waits_for_cipher(std::function<void()> call) {
    if (at_cipher_) later_.push_back(std::move(call));
    return at_cipher_;
  }

  void hand_to_cipher(std::function<void()> run, std::function<void()> then) {
    at_cipher_ = true;
    // owners: the job, and the call that follows it
    const auto loan = std::make_shared<Loan>(*this);
    tls_.cipher_thread(loop_).submit(std::move(run), [loan, then = std::move(then)] {
      TlsChannel& self = loan->end();
      self.at_cipher_ = false;
      then();
      while (!self.at_cipher_ && !self.later_.empty()) {
        const auto call = std::move(self.later_.front());
        self.later_.pop_front();
        call();
      }
      if (self.stage_ != Stage::closed) self.go_on();
    });
  }

  /// What waits holds the user, who holds this channel.
  void forget() {
    at_cipher_ = false;
    stage_ = Stage::closed;
    later_.clear();
    reading_.reset();
    writing_.reset();
  }

  /// Everything that can be done now; then waits for what is missing.
  void go_on() {
    if (at_cipher_) return;
    if (incoming_ == Incoming::wanted) incoming_ = Incoming::idle;
    if (stage_ == Stage::handshake) shake_hands();
    if ((stage_ == Stage::verdict || stage_ == Stage::open) && encrypt_somewhere()) return;
    if (stage_ == Stage::verdict) hear_verdict();
    if (stage_ == Stage::open && reading_ && decrypt_somewhere()) return;
    send();
    if (stage_ == Stage::failed) return answer(failure_);
    if (incoming_ == Incoming::wanted || stage_ == Stage::parting) receive();
  }

  void shake_hands() {
    ERR_clear_error();
    const int done = SSL_do_handshake(ssl_.get());
    if (wire_.plain) return part_from_plain();
    if (wire_.http) return fail(asio::error::connection_refused, std::string(kSpeaksHttp));
    if (done != 1) return check(done);
    X509* const theirs = SSL_get0_peer_certificate(ssl_.get());
    const auto objection = theirs != nullptr ? tls_.objection_to(theirs, loop_.unix_nanos() / 1'000'000'000)
                                             : std::optional<std::string>("it shows no token");
    stage_ = Stage::verdict;
    say_verdict(objection.value_or("").substr(0, wire::kMostVerdictBytes));
    if (!objection) return;
    const bool dialed = SSL_is_server(ssl_.get()) == 0;
    part("this peer refuses it: " + *objection +
         (dialed && theirs != nullptr ? advice_on_port_of(theirs) : std::string()));
  }

  void say_verdict(const std::string& objection) {
    const auto size = static_cast<std::uint16_t>(objection.size());
    std::string verdict{static_cast<char>(size & 0xff), static_cast<char>(size >> 8)};
    verdict += objection;
    TW_CHECK(SSL_write(ssl_.get(), verdict.data(), static_cast<int>(verdict.size())) > 0);
  }

  void hear_verdict() {
    while (heard_.size() < heard_needs()) {
      char next[wire::kMostVerdictBytes];
      const std::size_t missing = std::min(heard_needs() - heard_.size(), sizeof next);
      ERR_clear_error();
      const int bytes = SSL_read(ssl_.get(), next, static_cast<int>(missing));
      if (bytes <= 0) return check(bytes);
      heard_.append(next, static_cast<std::size_t>(bytes));
    }
    if (heard_.size() == 2) {
      stage_ = Stage::open;
      return;
    }
    std::string objection = heard_.substr(2);
    std::replace_if(
        objection.begin(), objection.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
    fail(asio::error::connection_refused, "it refuses this peer: " + objection);
    lacks_credential_ = true;
  }

  std::size_t heard_needs() const {
    if (heard_.size() < 2) return 2;
    const auto low = static_cast<unsigned char>(heard_[0]);
    const auto high = static_cast<unsigned char>(heard_[1]);
    return 2 + std::min<std::size_t>(low | high << 8, wire::kMostVerdictBytes);
  }

  /// Nothing is wrong as long as OpenSSL only wants more bytes.
  void check(int result) { check({0, SSL_get_error(ssl_.get(), result), last_trouble()}); }

  void check(const Decrypted& turn) {
    if (turn.error == SSL_ERROR_WANT_READ) {
      if (incoming_ == Incoming::idle) incoming_ = Incoming::wanted;
      if (!received_) return;
      if (*received_ == asio::error::eof && failure_) return fail(failure_, "");
      if (*received_ == asio::error::eof && stage_ != Stage::handshake)
        return fail(asio::error::connection_aborted, "connection cut off");
      return fail(*received_, "");
    }
    if (turn.error == SSL_ERROR_ZERO_RETURN) return fail(asio::error::eof, "");
    fail(asio::error::connection_aborted, turn.trouble);
  }

  void fail(const std::error_code& error, std::string why) {
    stage_ = Stage::failed;
    failure_ = error;
    why_ = std::move(why);
  }

  /// After the refusal of the other side: it must not be lost with the connection, so wait until the other
  /// side has read it.
  void part(std::string why) {
    SSL_shutdown(ssl_.get());
    start_parting(std::move(why));
  }

  void part_from_plain() {
    const Preface refusal = tls_preface();
    wire_.leaving.assign(refusal.begin(), refusal.end());
    start_parting(
        "it speaks without TLS, this peer with it; either all peers of a run have a token or all say "
        "--insecure");
  }

  void start_parting(std::string why) {
    stage_ = Stage::parting;
    end_after_what_leaves();
    why_ = std::move(why);
    lacks_credential_ = true;
    loop_.at(loop_.now() + kFarewell, [channel = weak_from_this()] {
      const auto self = channel.lock();
      if (self && !self->at_cipher_ && self->stage_ == Stage::parting) self->end_parting();
    });
  }

  void end_parting() {
    stage_ = Stage::failed;
    failure_ = asio::error::connection_refused;
    answer(failure_);
  }

  /// True: the other thread does it.
  bool decrypt_somewhere() {
    if (!tls_.cipher_thread(loop_).takes(wire_.end - wire_.begin)) {
      finish_read(decrypt());
      return false;
    }
    // owners: the job and what follows it
    const auto turn = std::make_shared<Decrypted>();
    hand_to_cipher([this, turn] { *turn = decrypt(); }, [this, turn] { finish_read(*turn); });
    return true;
  }

  /// Loop or cipher thread: into the user's buffers.
  Decrypted decrypt() {
    Decrypted turn;
    for (const asio::mutable_buffer& buffer : reading_->to) {
      auto* at = static_cast<char*>(buffer.data());
      for (std::size_t have = 0; have < buffer.size();) {
        ERR_clear_error();
        std::size_t bytes = 0;
        const int result = SSL_read_ex(ssl_.get(), at + have, buffer.size() - have, &bytes);
        if (result <= 0) {
          turn.error = SSL_get_error(ssl_.get(), result);
          turn.trouble = last_trouble();
          return turn;
        }
        have += bytes;
        turn.bytes += bytes;
      }
    }
    return turn;
  }

  void finish_read(const Decrypted& turn) {
    if (turn.bytes == 0) return check(turn);
    const Done done = std::exchange(reading_, std::nullopt)->done;
    done({}, turn.bytes);
  }

  /// True: the other thread does it.
  bool encrypt_somewhere() {
    if (!writing_ || writing_->taken > 0 || sending()) return false;
    if (!tls_.cipher_thread(loop_).takes(std::min(asio::buffer_size(writing_->from), kSendBytes))) {
      encrypt();
      return false;
    }
    hand_to_cipher([this] { encrypt(); }, [] {});
    return true;
  }

  /// Loop or cipher thread. Full records where there are bytes for them: from the buffers themselves, or
  /// gathered from small ones.
  void encrypt() {
    std::array<std::byte, kRecordBytes> gathered;
    std::size_t have = 0;
    for (const asio::const_buffer& buffer : writing_->from) {
      const auto* at = static_cast<const std::byte*>(buffer.data());
      std::size_t left = std::min(buffer.size(), kSendBytes - writing_->taken);
      writing_->taken += left;
      while (left > 0) {
        const bool direct = have == 0 && left >= kRecordBytes;
        const std::size_t bytes = direct ? left - left % kRecordBytes : std::min(left, kRecordBytes - have);
        if (direct) {
          encrypt(at, bytes);
        } else {
          std::memcpy(&gathered[have], at, bytes);
          have += bytes;
        }
        if (have == kRecordBytes) encrypt(gathered.data(), std::exchange(have, 0));
        at += bytes;
        left -= bytes;
      }
    }
    if (have > 0) encrypt(gathered.data(), have);
  }

  void encrypt(const std::byte* from, std::size_t bytes) {
    key_used_ += bytes;
    if (key_used_ >= tls_.key_bytes()) {
      key_used_ = 0;
      TW_CHECK(SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1);
    }
    ERR_clear_error();
    // The BIO takes all bytes, so nothing but a connection that failed before can fail here.
    if (SSL_write(ssl_.get(), from, static_cast<int>(bytes)) <= 0)
      fail(asio::error::connection_aborted, last_trouble());
  }

  bool sending() const { return outgoing_ == Outgoing::sending || outgoing_ == Outgoing::sending_last; }

  void end_after_what_leaves() { outgoing_ = sending() ? Outgoing::sending_last : Outgoing::ending; }

  void send() {
    if (sending() || stage_ == Stage::closed || wire_.leaving.empty()) return;
    outgoing_ = outgoing_ == Outgoing::ending ? Outgoing::sending_last : Outgoing::sending;
    departing_.swap(wire_.leaving);
    wire_.leaving.clear();
    departed_ = 0;
    send_rest();
  }

  void send_rest() {
    const auto rest = asio::buffer(departing_.data() + departed_, departing_.size() - departed_);
    socket_.async_write_some(rest,
                             [self = shared_from_this()](const std::error_code& error, std::size_t bytes) {
                               self->on_sent(error, bytes);
                             });
  }

  void on_sent(const std::error_code& error, std::size_t bytes) {
    if (waits_for_cipher([self = shared_from_this(), error, bytes] { self->on_sent(error, bytes); })) return;
    if (stage_ == Stage::closed) return;
    departed_ += bytes;
    if (!error && departed_ < departing_.size()) return send_rest();
    outgoing_ = outgoing_ == Outgoing::sending_last ? Outgoing::ending : Outgoing::idle;
    if (error) {
      // Unread bytes of the other side may hold its reason. If not: the kernel told the error to this write,
      // and tells the read nothing but the end.
      if (error != asio::error::broken_pipe && stage_ != Stage::failed) failure_ = error;
      if (!received_ && incoming_ == Incoming::receiving) return;
      if (stage_ != Stage::failed) fail(error, why_);
      return answer(failure_);
    }
    if (wire_.leaving.empty() && outgoing_ == Outgoing::ending) shut_down();
    if (writing_ && writing_->taken > 0) {
      const Writing written = *std::exchange(writing_, std::nullopt);
      written.done({}, written.taken);
    }
    go_on();
  }

  void shut_down() {
    std::error_code ignored;  // a broken socket ends the read that is under way
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  }

  void receive() {
    if (incoming_ == Incoming::receiving || received_) {
      if (received_ && stage_ == Stage::parting) end_parting();
      return;
    }
    if (wire_.begin == wire_.end) wire_.begin = wire_.end = 0;
    const std::size_t room_bytes = stage_ == Stage::open ? kReceiveBytes : kGreetingBytes;
    if (wire_.arrived.size() < room_bytes) wire_.arrived.resize(room_bytes);
    if (wire_.begin > 0) {
      std::memmove(wire_.arrived.data(), &wire_.arrived[wire_.begin], wire_.end - wire_.begin);
      wire_.end -= std::exchange(wire_.begin, 0);
    }
    incoming_ = Incoming::receiving;
    const auto room = asio::buffer(&wire_.arrived[wire_.end], wire_.arrived.size() - wire_.end);
    socket_.async_read_some(room,
                            [self = shared_from_this()](const std::error_code& error, std::size_t bytes) {
                              self->on_received(error, bytes);
                            });
  }

  void on_received(const std::error_code& error, std::size_t bytes) {
    if (waits_for_cipher([self = shared_from_this(), error, bytes] { self->on_received(error, bytes); }))
      return;
    incoming_ = Incoming::idle;
    if (stage_ == Stage::closed) return;
    wire_.end += bytes;
    if (error) received_ = error;
    if (!std::exchange(wire_.saw_first, true)) {
      wire_.plain = wire_.begins_with(kPlainBegin);
      wire_.http = wire_.begins_with(kHttpBegin);
    }
    if (stage_ == Stage::parting) wire_.begin = wire_.end = 0;
    go_on();
  }

  /// Ends what the user waits for.
  void answer(const std::error_code& error) {
    auto reading = std::exchange(reading_, std::nullopt);
    auto writing = std::exchange(writing_, std::nullopt);
    if (reading) reading->done(error, 0);
    if (writing) writing->done(error, 0);
  }

  Loop& loop_;
  const Tls& tls_;
  asio::ip::tcp::socket socket_;
  Wire wire_;
  std::unique_ptr<SSL, FreeSsl> ssl_;
  Stage stage_ = Stage::handshake;
  std::string heard_;        // the verdict of the other side, so far
  std::error_code failure_;  // before it failed: that of a write, while bytes may arrive
  bool lacks_credential_ = false;
  std::string why_;

  std::optional<Reading> reading_;
  std::optional<Writing> writing_;
  std::vector<std::byte> departing_;  // with the kernel from departed_ on
  std::size_t departed_ = 0;
  Outgoing outgoing_ = Outgoing::idle;
  Incoming incoming_ = Incoming::idle;
  std::optional<std::error_code> received_;  // the end of what arrives
  std::uint64_t key_used_ = 0;               // bytes since the last change of the key
  bool at_cipher_ = false;                   // the other thread has ssl_, wire_ and the user's buffers
  std::deque<std::function<void()>> later_;  // once it gives them back
};

}  // namespace

// owners: see channel_tls.h
std::shared_ptr<Channel> tls_channel(Loop& loop, const Tls& tls, asio::ip::tcp::socket socket, Side side) {
  return std::make_shared<TlsChannel>(loop, tls, std::move(socket), side);  // owners: as above
}

}  // namespace tw::host
