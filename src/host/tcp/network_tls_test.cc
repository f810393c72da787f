// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <openssl/ec.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "host/identity/authority.h"
#include "host/identity/holder.h"
#include "host/identity/tls.h"
#include "host/tcp/admission/greeting.h"
#include "host/tcp/admission/stranger.h"
#include "host/tcp/party.h"
#include "host/web/certificate.h"
#include "host/web/server.h"

namespace tw::host {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kDay = 86400;

class TlsNetwork : public testing::Test {
 protected:
  std::int64_t now() { return loop.unix_nanos() / 1'000'000'000; }

  wire::Token token(const Authority& authority, std::int64_t days, wire::Role role = wire::Role::peer) {
    return authority.issue(
        {.role = role, .from_unix_s = now() - 2 * kDay, .expires_unix_s = now() + days * kDay});
  }

  /// TLS of any token, also of those that no peer would begin with: as if it had been sound then.
  const Tls* tls_of(const wire::Token& token) {
    const bool observer = token.role == wire::Role::observer;
    auto tls = Tls::open(token, observer ? now() : token.expires_unix_s - 1);
    EXPECT_TRUE(tls) << tls.error().message;
    return opened.emplace_back(std::move(tls).value()).get();
  }

  const Tls* tls(std::int64_t days = 1) { return tls_of(token(run, days)); }

  Loop loop;
  Authority run = Authority::create("words");
  std::vector<std::unique_ptr<Tls>> opened;
};

TEST_F(TlsNetwork, links_peers_with_tokens_of_one_run) {
  Party one(loop, 1, {.tls = tls()});
  Party two(loop, 2, {.tls = tls_of(token(run, 1, wire::Role::anchor))});
  ASSERT_TRUE(link_up(loop, one, two));
  for (int i = 0; i < 100; ++i) one.network.send(PeerId{2}, text_frame(std::to_string(i)));
  two.network.send(PeerId{1}, text_frame("back"));
  ASSERT_TRUE(
      soon(loop, [&] { return two.heard[PeerId{1}].size() == 100 && one.heard[PeerId{2}].size() == 1; }));
  EXPECT_EQ(two.heard[PeerId{1}].back(), "99");
}

class TlsThreads : public TlsNetwork, public testing::WithParamInterface<CipherThread::Use> {
 protected:
  const Tls* renewing() {
    auto tls = Tls::open(token(run, 1), now(), {.key_bytes = 100'000, .cipher_thread = GetParam()});
    return opened.emplace_back(std::move(tls).value()).get();
  }
};

INSTANTIATE_TEST_SUITE_P(Both, TlsThreads,
                         testing::Values(CipherThread::Use::when_fast, CipherThread::Use::always));

TEST_P(TlsThreads, carry_bulk_messages_of_any_size_whole_while_keys_are_renewed) {
  Party one(loop, 1, {.tls = renewing()});
  Party two(loop, 2, {.tls = renewing()});
  const std::vector<std::size_t> sizes = {1, 16383, 16384, 16385, 131072, 262144, 1 << 20, 5, 100'000};
  const auto byte_of = [](std::size_t message, std::size_t at) {
    return static_cast<std::byte>(message * 31 + at);
  };
  std::size_t made = 0;
  one.make_bulk = [&](PeerId) -> std::optional<Frame> {
    if (made == sizes.size()) return std::nullopt;
    std::vector<std::byte> payload(sizes[made]);
    for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = byte_of(made, i);
    return Frame{text_blob(std::to_string(made++)), Blob(std::move(payload))};
  };
  ASSERT_TRUE(link_up(loop, one, two));
  ASSERT_TRUE(soon(loop, [&] { return two.bulk[PeerId{1}].size() == sizes.size(); }));
  for (const Frame& frame : two.bulk[PeerId{1}]) {
    const std::size_t message = std::stoul(text_of(frame.head));
    ASSERT_EQ(frame.payload.size(), sizes[message]);
    for (std::size_t i = 0; i < frame.payload.size(); ++i)
      ASSERT_EQ(frame.payload.bytes()[i], byte_of(message, i)) << message << " at " << i;
  }
}

TEST_P(TlsThreads, end_a_link_in_the_middle_of_a_message) {
  Party two(loop, 2, {.tls = renewing()});
  for (std::uint64_t id = 10; id < 30; ++id) {
    Party one(loop, id, {.tls = renewing()});
    one.make_bulk = [](PeerId) { return Frame{text_blob("more"), Blob(std::vector<std::byte>(1 << 20))}; };
    ASSERT_TRUE(link_up(loop, one, two));
    const auto& arrived = two.bulk[PeerId{id}];
    ASSERT_TRUE(soon(loop, [&] { return arrived.size() >= id % 3; }));
    if (id % 2 == 0) two.network.close(PeerId{id});
  }
}

TEST_F(TlsNetwork, tells_a_connection_that_was_cut_from_one_that_was_closed) {
  Party two(loop, 2, {.tls = tls()});
  {
    Party one(loop, 1, {.tls = tls()});
    ASSERT_TRUE(link_up(loop, one, two));
  }
  ASSERT_TRUE(soon(loop, [&] { return !two.linked(1); }));
  EXPECT_EQ(two.story.back(), "close 1: connection cut off");
}

/// One dials the other; what each of them is told.
struct Meeting {
  Meeting(Loop& loop, const Tls* dialer, const Tls* other)
      : one(loop, 1, {.tls = dialer}), two(loop, 2, {.tls = other}) {
    one.network.connect(two.address);
    soon(loop, [&] { return !one.story.empty() && (!two.garbage.empty() || !two.story.empty()); });
    settle(loop);
  }

  std::string dialer() const { return one.story.empty() ? "" : one.story.front(); }

  std::string other() const { return two.garbage.empty() ? "" : two.garbage.front(); }

  bool linked() const { return one.linked(2) || two.linked(1); }

  Party one;
  Party two;
};

TEST_F(TlsNetwork, turns_a_token_of_another_run_away_and_tells_both) {
  const Authority another = Authority::create("pictures");
  Meeting meeting(loop, tls_of(token(another, 1)), tls());
  EXPECT_FALSE(meeting.linked());
  // Both refuse; which refusal is told depends on who is faster.
  EXPECT_THAT(meeting.dialer(), AllOf(HasSubstr("(credential)"), HasSubstr("the token is not of run")));
  EXPECT_THAT(meeting.other(), HasSubstr("the token is not of run"));
  EXPECT_THAT(meeting.dialer() + meeting.other(), AllOf(HasSubstr("'words'"), HasSubstr("'pictures'")));
}

TEST_F(TlsNetwork, says_that_a_clock_is_behind_the_token) {
  const wire::Token early = token(run, 1);
  const std::int64_t begin = begin_of(early).value();
  EXPECT_EQ(begin, now() - 2 * kDay - 3600);
  const auto opened_at = [&](std::int64_t at) { return Tls::open(early, at); };
  EXPECT_TRUE(opened_at(begin));
  ASSERT_FALSE(opened_at(begin - 1));
  EXPECT_THAT(opened_at(begin - 1).error().message, HasSubstr("set the clock that is wrong"));
}

using X509Owner = std::unique_ptr<X509, decltype(&X509_free)>;

/// As a proxy shows it that reads the traffic.
X509Owner foreign_certificate() {
  X509Owner certificate(X509_new(), X509_free);
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  const auto* name = reinterpret_cast<const unsigned char*>("Corp Proxy");
  X509_NAME_add_entry_by_NID(X509_get_issuer_name(certificate.get()), NID_commonName, MBSTRING_UTF8, name, -1,
                             -1, 0);
  TW_CHECK(X509_set_pubkey(certificate.get(), key) == 1 &&
           X509_sign(certificate.get(), key, EVP_sha256()) > 0);
  EVP_PKEY_free(key);
  return certificate;
}

TEST_F(TlsNetwork, takes_what_is_no_peer_for_none_instead_of_one_of_another_run) {
  const WebCertificate page(token(run, 1),
                            {.hosts = {"127.0.0.1"}, .from_unix_s = 0, .to_unix_s = 4'000'000'000});
  X509* const of_page = SSL_CTX_get0_certificate(page.context());
  EXPECT_EQ(tls()->objection_to(of_page, 1'000'000),
            "the certificate, issued by 'tradewind words', is of no token");
  EXPECT_THAT(advice_on_port_of(of_page), HasSubstr("the port of a page (--watch), not of a peer"));
  const auto foreign = foreign_certificate();
  EXPECT_EQ(tls()->objection_to(foreign.get(), 1'000'000),
            "the certificate, issued by 'Corp Proxy', is of no token");
  EXPECT_THAT(advice_on_port_of(foreign.get()), HasSubstr("a proxy in between reads the traffic"));
  const Authority another = Authority::create("pictures");
  EXPECT_EQ(advice_on_port_of(SSL_CTX_get0_certificate(tls_of(token(another, 1))->context())), "");
}

TEST_F(TlsNetwork, tells_one_who_dials_the_page_that_it_is_one) {
  const auto page = WebServer::open(loop, {.address = "0.0.0.0:0", .token = token(run, 1)},
                                    [](const WebRequest&) { return WebAnswer{}; });
  ASSERT_TRUE(page) << page.error().message;
  std::string port = page.value()->url();
  port = port.substr(port.rfind(':'));
  port.pop_back();  // the slash
  Party one(loop, 1, {.tls = tls()});
  one.network.connect("127.0.0.1" + port);
  ASSERT_TRUE(soon(loop, [&] { return !one.story.empty(); }));
  EXPECT_THAT(one.story.front(),
              AllOf(HasSubstr("this peer refuses it: the certificate, issued by 'tradewind"),
                    HasSubstr("is the port of a page (--watch)")));
}

TEST_F(TlsNetwork, turns_an_expired_token_of_the_dialer_away_and_tells_both) {
  Meeting meeting(loop, tls(-1), tls());
  EXPECT_FALSE(meeting.linked());
  EXPECT_THAT(meeting.dialer(),
              AllOf(HasSubstr("it refuses this peer: the token of run 'words'"), HasSubstr("expired on 20"),
                    HasSubstr("`tw token FOLDER` makes a new one")));
  EXPECT_THAT(meeting.other(), AllOf(HasSubstr("this peer refuses it"), HasSubstr("expired on")));
}

TEST_F(TlsNetwork, turns_an_expired_token_of_the_dialed_peer_away_and_tells_both) {
  Meeting meeting(loop, tls(), tls(-1));
  EXPECT_FALSE(meeting.linked());
  EXPECT_THAT(meeting.dialer(), AllOf(HasSubstr("this peer refuses it: the token"), HasSubstr("expired on")));
  EXPECT_THAT(meeting.other(), AllOf(HasSubstr("it refuses this peer"), HasSubstr("expired on")));
}

TEST_F(TlsNetwork, tells_a_dialer_without_tls_why_it_gets_no_link) {
  Meeting meeting(loop, nullptr, tls());
  EXPECT_FALSE(meeting.linked());
  EXPECT_THAT(meeting.dialer(),
              AllOf(HasSubstr("(credential)"), HasSubstr("it speaks TLS"), HasSubstr("--insecure")));
  EXPECT_THAT(meeting.other(), HasSubstr("it speaks without TLS"));
}

TEST_F(TlsNetwork, tells_a_dialer_with_tls_that_the_other_peer_is_without) {
  Meeting meeting(loop, tls(), nullptr);
  EXPECT_FALSE(meeting.linked());
  EXPECT_THAT(meeting.dialer(),
              AllOf(HasSubstr("(credential)"), HasSubstr("without TLS"), HasSubstr("--insecure")));
  EXPECT_THAT(meeting.other(), HasSubstr("it speaks TLS"));
}

TEST_F(TlsNetwork, does_not_begin_with_a_token_that_cannot_train) {
  const auto why = [&](const wire::Token& token) {
    const auto tls = Tls::open(token, now());
    return tls ? "" : tls.error().message;
  };
  EXPECT_EQ(why(token(run, 1)), "");
  EXPECT_THAT(why(token(run, -1)), HasSubstr("expired on"));
  EXPECT_THAT(why(token(run, 1, wire::Role::observer)),
              AllOf(HasSubstr("observer"), HasSubstr("--role peer")));
  wire::Token mixed = token(run, 1);
  mixed.secret = token(run, 1).secret;
  EXPECT_THAT(why(mixed), HasSubstr("do not fit together"));
  mixed = token(run, 1);
  mixed.run_key = token(Authority::create("other"), 1).run_key;
  EXPECT_THAT(why(mixed), HasSubstr("not of run"));
}

/// A stranger that speaks TLS 1.3 with whatever it has.
class TlsStranger {
 public:
  TlsStranger(const std::string& address, const wire::Token* token, int version = TLS1_3_VERSION)
      : stranger_(address), context_(SSL_CTX_new(TLS_method())), ssl_(nullptr) {
    SSL_CTX_set_max_proto_version(context_, version);
    if (token != nullptr) {
      const auto* certificate = reinterpret_cast<const unsigned char*>(token->certificate.data());
      SSL_CTX_use_certificate_ASN1(context_, static_cast<int>(token->certificate.size()), certificate);
      EVP_PKEY* key = EVP_PKEY_new_raw_private_key(
          EVP_PKEY_ED25519, nullptr, reinterpret_cast<const unsigned char*>(token->secret.data()), 32);
      SSL_CTX_use_PrivateKey(context_, key);
      EVP_PKEY_free(key);
    }
    ssl_ = SSL_new(context_);
    const int flags = ::fcntl(stranger_.descriptor(), F_GETFL);
    ::fcntl(stranger_.descriptor(), F_SETFL, flags | O_NONBLOCK);
    SSL_set_fd(ssl_, stranger_.descriptor());
    SSL_set_connect_state(ssl_);
  }

  ~TlsStranger() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }

  TlsStranger(const TlsStranger&) = delete;
  TlsStranger& operator=(const TlsStranger&) = delete;

  /// Takes in what came. True when no more will come.
  bool ended() {
    char bytes[4096];
    int got = 0;
    while ((got = SSL_read(ssl_, bytes, sizeof bytes)) > 0)
      heard_.append(bytes, static_cast<std::size_t>(got));
    return SSL_get_error(ssl_, got) != SSL_ERROR_WANT_READ;
  }

  void say(const std::string& text) { SSL_write(ssl_, text.data(), static_cast<int>(text.size())); }

  const std::string& heard() const { return heard_; }

 private:
  Stranger stranger_;
  SSL_CTX* context_;
  SSL* ssl_;
  std::string heard_;
};

/// Greeting of a dialer that finds no fault with the other side.
std::string a_dialers_greeting() {
  const auto text = [](std::span<const std::byte> bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  std::string words(2, '\0');
  words += text(preface());
  for (const Frame& frame :
       {encode_greeting({StreamKind::control, Verdict::greet, PeerId{9}, 42, {}}), text_frame("9")})
    words += text(lengths_of(frame)) + text(frame.head.bytes()) + text(frame.payload.bytes());
  return words;
}

std::size_t objection_bytes(const std::string& heard) {
  return static_cast<unsigned char>(heard.at(0)) + 256U * static_cast<unsigned char>(heard.at(1));
}

TEST_F(TlsNetwork, lets_nobody_in_without_a_credential) {
  Party one(loop, 1, {.tls = tls()});
  const wire::Token observer = token(run, 1, wire::Role::observer);
  wire::Token self_signed = token(Authority::create("words"), 1);

  struct Case {
    const wire::Token* token;
    int version;
    std::string told;  ///< to the stranger, inside TLS
    std::string garbage;
  };

  const Case cases[] = {
      {nullptr, TLS1_3_VERSION, "", "peer did not return a certificate"},
      {nullptr, TLS1_2_VERSION, "", "unsupported protocol"},
      {&self_signed, TLS1_3_VERSION, "the token is not of run", "the token is not of run"},
      {&observer, TLS1_3_VERSION, "is for the role observer", "is for the role observer"},
  };
  for (const Case& c : cases) {
    one.garbage.clear();
    std::optional<TlsStranger> stranger(std::in_place, one.address, c.token, c.version);
    soon(loop, [&] { return stranger->ended() || !stranger->heard().empty(); });
    stranger->say(a_dialers_greeting());
    ASSERT_TRUE(soon(loop, [&] { return stranger->ended(); })) << c.garbage;
    const std::string heard = stranger->heard();
    stranger.reset();
    ASSERT_TRUE(soon(loop, [&] { return !one.garbage.empty(); })) << c.garbage;
    EXPECT_THAT(heard, HasSubstr(c.told));
    EXPECT_EQ(heard.size(), c.told.empty() ? 0 : 2 + objection_bytes(heard))
        << "an objection, and no greeting";
    EXPECT_THAT(one.garbage, ElementsAre(HasSubstr(c.garbage)));
  }
  EXPECT_THAT(one.story, IsEmpty());
}

TEST_F(TlsNetwork, refuses_plain_bytes) {
  Party one(loop, 1, {.tls = tls()});
  Stranger stranger(one.address);
  stranger.say("GET / HTTP/1.0\r\n\r\n");
  ASSERT_TRUE(soon(loop, [&] { return stranger.ended() && !one.garbage.empty(); }));
  EXPECT_THAT(one.garbage, ElementsAre(HasSubstr("TLS failed: http request")));
}

TEST_F(TlsNetwork, gives_up_on_somebody_who_does_not_shake_hands) {
  Party one(loop, 1, {.tls = tls(), .patience = std::chrono::milliseconds(100)});
  Stranger stranger(one.address);
  stranger.say("\x16\x03\x01\x3f");
  ASSERT_TRUE(soon(loop, [&] { return !one.garbage.empty(); }));
  EXPECT_THAT(one.garbage, ElementsAre(HasSubstr("no hello within 0.1 s")));
}

TEST_F(TlsNetwork, links_a_peer_through_many_strangers_that_begin_to_shake_hands) {
  Party one(loop, 1, {.tls = tls()});
  Party two(loop, 2, {.tls = tls()});
  std::vector<std::unique_ptr<TlsStranger>> strangers;
  const auto send_a_hello = [](TlsStranger& stranger) { (void)stranger.ended(); };
  for (int i = 0; i < 300; ++i) send_a_hello(*strangers.emplace_back(new TlsStranger(one.address, nullptr)));
  two.network.connect(one.address);
  EXPECT_TRUE(loop.run_until([&] { return one.linked(2) && two.linked(1); }, std::chrono::seconds(3)));
}

class RunFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "tw-run-" + std::to_string(getpid());
    std::filesystem::remove_all(folder_);
  }

  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

TEST_F(RunFolder, gives_the_authority_back) {
  const Authority made = Authority::create("words");
  ASSERT_TRUE(made.save(folder_));
  const auto again = Authority::open(folder_);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again.value().name(), "words");
  const wire::Token token = again.value().issue({.from_unix_s = 0, .expires_unix_s = 1000});
  EXPECT_EQ(token.run_key, made.issue({.from_unix_s = 0, .expires_unix_s = 1000}).run_key);
  EXPECT_TRUE(Tls::open(token, 999));
}

TEST_F(RunFolder, is_for_its_owner_alone_and_never_replaced) {
  ASSERT_TRUE(Authority::create("words").save(folder_));
  const auto permissions = std::filesystem::status(folder_ + "/ca.key").permissions();
  EXPECT_EQ(permissions, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  const Status second = Authority::create("words").save(folder_);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, AllOf(HasSubstr("ca.key"), HasSubstr("exists already")));
}

TEST_F(RunFolder, that_is_missing_or_damaged_is_told_with_its_file) {
  EXPECT_THAT(Authority::open(folder_).error().message, AllOf(HasSubstr("ca.key"), HasSubstr("tw init")));
  ASSERT_TRUE(Authority::create("words").save(folder_));
  std::filesystem::resize_file(folder_ + "/ca.key", 20);
  EXPECT_THAT(Authority::open(folder_).error().message, AllOf(HasSubstr("ca.key"), HasSubstr("damaged")));
}

}  // namespace
}  // namespace tw::host
