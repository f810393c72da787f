// SPDX-License-Identifier: Apache-2.0
#include "base/digest.h"

#include <fmt/format.h>

#include <algorithm>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // XXH3_128bits picks its kernel at run time: 47 instead of 12 GB/s
#else
#include <xxhash.h>
#endif

#include "base/check.h"
#include "base/parallel.h"

namespace tw {

namespace {

Digest to_digest(XXH128_hash_t hash) { return {hash.high64, hash.low64}; }

}  // namespace

struct Digester::State {
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> hash{XXH3_createState(), XXH3_freeState};
};

Digester::Digester() : state_(std::make_unique<State>()) {
  TW_CHECK(state_->hash != nullptr);
  XXH3_128bits_reset(state_->hash.get());
}

Digester::~Digester() = default;

void Digester::add(std::span<const float> values) {
  XXH3_128bits_update(state_->hash.get(), values.data(), values.size_bytes());
}

Digest Digester::digest() const { return to_digest(XXH3_128bits_digest(state_->hash.get())); }

Digest digest_of(std::span<const std::byte> bytes) {
  return to_digest(XXH3_128bits(bytes.data(), bytes.size()));
}

Digest digest_of(std::span<const float> values) { return digest_of(std::as_bytes(values)); }

Digest digest_of(const std::string& text) { return digest_of(std::as_bytes(std::span(text))); }

Digest digest_of_parameters(std::span<const float> parameters, std::size_t threads) {
  return ParameterDigest().of(parameters, threads);
}

void ParameterDigest::changed(std::size_t first, std::size_t count) {
  const std::size_t begin = std::min(first / kDigestPiece, pieces_.size());
  const std::size_t end = std::min((first + count + kDigestPiece - 1) / kDigestPiece, pieces_.size());
  for (std::size_t i = begin; i < end; ++i) pieces_[i].reset();
}

Digest ParameterDigest::of(std::span<const float> parameters, std::size_t threads) {
  if (parameters.empty()) return digest_of(parameters);
  pieces_.resize((parameters.size() + kDigestPiece - 1) / kDigestPiece);
  std::vector<std::size_t> unknown;
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    if (!pieces_[i]) unknown.push_back(i);
  in_parallel(threads_for(unknown.size() * kDigestPiece, threads), unknown.size(), [&](std::size_t i) {
    const std::size_t first = unknown[i] * kDigestPiece;
    pieces_[unknown[i]] =
        digest_of(parameters.subspan(first, std::min(kDigestPiece, parameters.size() - first)));
  });
  if (pieces_.size() == 1) return *pieces_.front();
  std::vector<Digest> all;
  for (const std::optional<Digest>& piece : pieces_) all.push_back(*piece);
  return digest_of(std::as_bytes(std::span(all)));
}

std::string to_string(const Digest& digest) { return fmt::format("{:016x}{:016x}", digest.high, digest.low); }

}  // namespace tw
