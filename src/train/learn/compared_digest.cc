// SPDX-License-Identifier: Apache-2.0
#include "train/learn/compared_digest.h"

#include <utility>

#include "wire/frame.h"

namespace tw::train {
namespace {

// With a mean that waits, the last update was that of the record before.
Digest stand_in_after(const wire::Record& record, bool late) {
  return late ? record.parent : digest_of(record);
}

}  // namespace

ComparedDigest::ComparedDigest(const RunOptions& run, std::span<const float> parameters, Options options)
    : run_(run), parameters_(parameters), options_(std::move(options)) {}

const Digest& ComparedDigest::begin() {
  own_.changed();
  is_own_ = true;
  return now_ = own_.of(parameters_, options_.threads);
}

// All peers have the same record, and so its digest; whose parameters differ is seen when they are compared.
const Digest& ComparedDigest::updated(const wire::Record& record, std::size_t first, std::size_t count) {
  own_.changed(first, count);
  is_own_ = run_.compares_parameters(record);
  if (!is_own_) return now_ = digest_of(record);
  if (options_.about_to_read) options_.about_to_read();
  return now_ = own_.of(parameters_, options_.threads);
}

const Digest& ComparedDigest::restored(const wire::Record& record, bool late, const Digest& parameters) {
  is_own_ = compares_after(record, late);
  return now_ = is_own_ ? parameters : stand_in_after(record, late);
}

const Digest& ComparedDigest::settle(const wire::Record& anew, bool late) {
  is_own_ = is_own_ && compares_after(anew, late);
  if (!is_own_) now_ = stand_in_after(anew, late);
  return now_;
}

void ComparedDigest::write_out() {
  written_ = is_own_ ? now_ : digest_of_parameters(parameters_, options_.threads);
}

bool ComparedDigest::compares_after(const wire::Record& record, bool late) const {
  return late ? run_.compares_parameters(record.round - 1) : run_.compares_parameters(record);
}

}  // namespace tw::train
