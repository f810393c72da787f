// SPDX-License-Identifier: Apache-2.0
#include "wire/token.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "base/digest.h"
#include "wire/base64.h"

namespace tw::wire {
namespace {

constexpr std::string_view kBegin = "tw1-";
constexpr std::size_t kChecksumBytes = 8;

// ---- fields: numbers little-endian, texts and lists behind their lengths

class TokenWriter {
 public:
  void number(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
  }

  void raw(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

  void text(const std::string& text) {
    number(text.size(), 1);
    raw(std::as_bytes(std::span(text)));
  }

  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

class TokenReader {
 public:
  explicit TokenReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    const auto from = raw(bytes);
    for (std::size_t i = 0; i < from.size(); ++i) value |= std::to_integer<std::uint64_t>(from[i]) << (8 * i);
    return value;
  }

  std::span<const std::byte> raw(std::size_t bytes) {
    if (bytes > rest_.size()) failed_ = true;
    if (failed_) return {};
    const auto taken = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return taken;
  }

  void key(Token::Key& key) {
    const auto from = raw(key.size());
    std::copy(from.begin(), from.end(), key.begin());
  }

  std::string text() {
    const auto from = raw(number(1));
    return {reinterpret_cast<const char*>(from.data()), from.size()};
  }

  bool finished() const { return !failed_ && rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool failed_ = false;
};

bool is_shown(const std::string& text) {
  return std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

std::optional<Token> read(std::span<const std::byte> bytes) {
  TokenReader reader(bytes);
  Token token;
  token.run = reader.text();
  reader.key(token.run_key);
  const std::uint64_t role = reader.number(1);
  token.expires_unix_s = static_cast<std::int64_t>(reader.number(8));
  const std::uint64_t addresses = reader.number(1);
  if (addresses > kMostTokenAddresses || role < 1 || role > 3) return std::nullopt;
  token.role = static_cast<Role>(role);
  for (std::uint64_t i = 0; i < addresses; ++i) token.addresses.push_back(reader.text());
  const auto certificate = reader.raw(std::min(reader.number(2), kMostCertificateBytes + 1));
  if (certificate.size() > kMostCertificateBytes) return std::nullopt;
  token.certificate.assign(certificate.begin(), certificate.end());
  reader.key(token.secret);
  const bool shown =
      is_shown(token.run) && std::all_of(token.addresses.begin(), token.addresses.end(), is_shown);
  if (!reader.finished() || !shown) return std::nullopt;
  return token;
}

std::uint64_t checksum_of(std::span<const std::byte> bytes) { return tw::digest_of(bytes).low; }

}  // namespace

const char* name_of(Role role) {
  static constexpr std::array<const char*, 4> kRoles = {"no role", "peer", "anchor", "observer"};
  return kRoles.at(static_cast<std::size_t>(role));
}

std::string run_of(const Token& token) {
  std::string id;
  for (const std::byte b : std::span(token.run_key).first(4))
    id += fmt::format("{:02x}", std::to_integer<int>(b));
  return fmt::format("'{}' ({})", token.run, id);
}

std::string to_text(const Token& token) {
  TW_CHECK(token.addresses.size() <= kMostTokenAddresses &&
           token.certificate.size() <= kMostCertificateBytes);
  TW_CHECK(token.run.size() <= kMostTokenText);
  TokenWriter fields;
  fields.text(token.run);
  fields.raw(token.run_key);
  fields.number(static_cast<std::uint64_t>(token.role), 1);
  fields.number(static_cast<std::uint64_t>(token.expires_unix_s), 8);
  fields.number(token.addresses.size(), 1);
  for (const std::string& address : token.addresses) {
    TW_CHECK(address.size() <= kMostTokenText);
    fields.text(address);
  }
  fields.number(token.certificate.size(), 2);
  fields.raw(token.certificate);
  fields.raw(token.secret);

  TokenWriter whole;
  whole.number(2 + fields.bytes().size() + kChecksumBytes, 2);
  whole.raw(fields.bytes());
  whole.number(checksum_of(whole.bytes()), kChecksumBytes);
  return std::string(kBegin) + to_base64(whole.bytes());
}

Result<Token> token_in(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return Error{"is empty; expected the line that `tw token` printed"};
  const std::string_view word =
      std::string_view(text).substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
  if (!word.starts_with(kBegin))
    return Error{fmt::format(
        "is no token: it does not begin with {}; expected the line that `tw token` printed", kBegin)};
  const auto bytes =
      word.size() <= kMostTokenCharacters ? from_base64(word.substr(kBegin.size())) : std::nullopt;
  if (!bytes)
    return Error{"is mistyped: it holds what no token does (letters, digits, - and _ alone); copy it again"};
  const std::size_t length = TokenReader(*bytes).number(2);
  if (bytes->size() < length || bytes->size() < 2 + kChecksumBytes)
    return Error{
        fmt::format("is torn: its end is missing after {} characters; copy the whole line", word.size())};
  const auto fields = std::span(*bytes).first(bytes->size() - kChecksumBytes);
  const bool sound =
      bytes->size() == length &&
      TokenReader(std::span(*bytes).subspan(fields.size())).number(kChecksumBytes) == checksum_of(fields);
  if (!sound) return Error{"is mistyped: its checksum differs; copy it again"};
  auto token = read(fields.subspan(2));
  if (!token) return Error{"was made by another version of tw; make one with the version of this peer"};
  return *std::move(token);
}

}  // namespace tw::wire
