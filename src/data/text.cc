// SPDX-License-Identifier: Apache-2.0
#include "data/text.h"

#include <fmt/format.h>

#include <limits>
#include <utility>
#include <vector>

#include "base/text/text_file.h"

namespace tw::data {
namespace {

/// More than a peer can hold in memory.
constexpr std::uint64_t kMostCorpusBytes = 1ULL << 40;

class TextDataset : public Dataset {
 public:
  TextDataset(std::string bytes, std::uint64_t context) : bytes_(std::move(bytes)), context_(context) {}

  std::uint64_t size() const override { return bytes_.empty() ? 0 : (bytes_.size() - 1) / context_; }

  Batch gather(std::span<const std::uint64_t> indices) const override {
    std::vector<std::int64_t> inputs;
    std::vector<std::int64_t> targets;
    inputs.reserve(indices.size() * context_);
    targets.reserve(indices.size() * context_);
    for (const std::uint64_t index : indices) {
      TW_CHECK(index < size());
      const char* sample = bytes_.data() + index * context_;
      for (std::uint64_t t = 0; t < context_; ++t) {
        inputs.push_back(static_cast<unsigned char>(sample[t]));
        targets.push_back(static_cast<unsigned char>(sample[t + 1]));
      }
    }
    const std::vector<std::uint64_t> shape = {indices.size(), context_};
    return {{shape, std::move(inputs)}, {shape, std::move(targets)}};
  }

 private:
  std::string bytes_;
  std::uint64_t context_;
};

}  // namespace

Result<TextCorpus> open_text_corpus(const std::string& path, std::uint64_t context, double test_share) {
  TW_CHECK(context > 0 && test_share >= 0 && test_share < 1);
  auto text = read_text_file(path, kMostCorpusBytes);
  if (!text) return text.error();
  const std::string& bytes = text.value();

  const auto tail = static_cast<std::size_t>(static_cast<double>(bytes.size()) * test_share);
  const std::size_t cut = bytes.size() - tail;
  TextCorpus corpus;
  corpus.training = std::make_unique<TextDataset>(bytes.substr(0, cut), context);
  if (test_share > 0) corpus.evaluation = std::make_unique<TextDataset>(bytes.substr(cut), context);
  const bool too_short =
      corpus.training->size() == 0 || (corpus.evaluation && corpus.evaluation->size() == 0);
  if (too_short) {
    return Error{fmt::format(
        "{}: {} bytes for training and {} for evaluation; each part needs at least {} (context + 1)", path,
        cut, tail, context + 1)};
  }
  if (corpus.training->size() > std::numeric_limits<std::uint32_t>::max()) {
    return Error{fmt::format("{}: more than 2^32 samples; use a larger context than {}", path, context)};
  }
  return corpus;
}

}  // namespace tw::data
