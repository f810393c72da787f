// SPDX-License-Identifier: Apache-2.0
#include "bind/tradewind_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "bind/boundary.h"
#include "bind/shard_data.h"
#include "bind/tradewind.h"
#include "host/system/standard_streams.h"

using namespace tw;
using namespace tw::bind;

struct tw_data {
  std::unique_ptr<ShardData> opened;
};

namespace {

/// Why this process cannot use it; empty: it can.
std::string unusable(const tw_data* data) { return data == nullptr ? "no data" : data->opened->foreign(); }

/// The error in these numbers of samples; empty: none.
std::string wrong_samples(tw_data& data, std::span<const std::uint64_t> samples) {
  const std::uint64_t size = data.opened->reader().index().size();
  const auto found = std::ranges::find_if(samples, [&](std::uint64_t sample) { return sample >= size; });
  return found == samples.end() ? "" : fmt::format("sample {}: expected 0 to {}", *found, size - 1);
}

/// A text for the caller; null with an error.
template <class Make>
char* made_text(tw_data* data, const Make& make) {
  char* text = nullptr;
  without_throwing([&] {
    if (const std::string why = unusable(data); !why.empty()) return misuse(why);
    return make(text);
  });
  return text;
}

}  // namespace

int tw_data_open(const tw_setting* settings, size_t count, tw_data** data) {
  return without_throwing([&] {
    if (settings == nullptr || data == nullptr) return misuse("a null pointer");
    const auto read = read_data_settings({settings, count});
    if (!read) return misuse(read.error().message);
    host::hold_standard_streams();
    auto opened = ShardData::open(read.value());
    if (!opened) return misuse(opened.error().message);
    *data = new tw_data{std::move(opened).value()};
    return int{TW_OK};
  });
}

char* tw_data_facts(tw_data* data) {
  return made_text(data, [&](char*& text) {
    text = copy_of(facts_json(data->opened->reader()));
    return int{TW_OK};
  });
}

char* tw_data_sample(tw_data* data, uint64_t sample) {
  return made_text(data, [&](char*& text) {
    if (const std::string why = wrong_samples(*data, {&sample, 1}); !why.empty()) return misuse(why);
    text = copy_of(sample_json(data->opened->reader().index(), sample));
    return int{TW_OK};
  });
}

char* tw_data_warnings(tw_data* data) {
  return made_text(data, [&](char*& text) {
    text = copy_of(data->opened->troubles().rest());
    return int{TW_OK};
  });
}

int tw_data_expect(tw_data* data, const uint64_t* samples, size_t count) {
  return without_throwing([&] {
    if (const std::string why = unusable(data); !why.empty()) return misuse(why);
    if (samples == nullptr && count > 0) return misuse("a null pointer");
    if (const std::string why = wrong_samples(*data, {samples, count}); !why.empty()) return misuse(why);
    data->opened->reader().expect({samples, count});
    return int{TW_OK};
  });
}

int tw_data_read(tw_data* data, const uint64_t* samples, size_t count, uint32_t limit_ms, tw_value* values) {
  return without_throwing([&] {
    if (const std::string why = unusable(data); !why.empty()) return misuse(why);
    if (samples == nullptr || values == nullptr) return misuse("a null pointer");
    if (const std::string why = wrong_samples(*data, {samples, count}); !why.empty()) return misuse(why);
    const std::size_t each = 1 + data->opened->reader().fields().size();
    const auto read =
        data->opened->read({samples, count}, std::chrono::milliseconds(limit_ms), {values, count * each});
    if (!read) return failed(read.error().message);
    return read.value() ? int{TW_OK} : int{TW_TIMEOUT};
  });
}

void tw_data_close(tw_data* data) {
  if (data == nullptr || !data->opened->foreign().empty()) return;
  delete data;
}
