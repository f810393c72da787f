// SPDX-License-Identifier: Apache-2.0
#include "bind/shard_data.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <set>
#include <utility>

#include "base/result.h"
#include "base/text/fields.h"
#include "base/text/option.h"
#include "base/text/quantity.h"
#include "host/disk/absolute_path.h"

namespace tw::bind {
namespace {

constexpr std::uint64_t kLeastMemory = 1U << 20;

const std::vector<std::string>& data_keys() {
  static const std::vector<std::string> keys = {"index",   "field",  "decode", "image",      "channels",
                                                "threads", "memory", "cache",  "cache_limit"};
  return keys;
}

Status take_count(const tw_setting& setting, Bounds bounds, std::uint32_t& target) {
  TW_TRY(const auto count, parse_count(OptionName(setting.key, '='), setting.value, bounds));
  target = static_cast<std::uint32_t>(count);
  return Unit{};
}

Status take_size(const tw_setting& setting, std::uint64_t least, std::uint64_t& target) {
  const auto size = parse_size(setting.value);
  if (!size || *size < least)
    return Error{fmt::format("{}={}: expected a size such as 256MiB, from {} to 1 TiB", setting.key,
                             setting.value, size_text(least))};
  target = *size;
  return Unit{};
}

Status take_decode(const std::string& value, bool& target) {
  const auto truth = truth_in(value);
  if (!truth) return Error{fmt::format("decode={}: expected true or false{}", value, meant_truth(value))};
  target = *truth;
  return Unit{};
}

Status take_picture(const tw_setting& setting, data::PictureOptions& picture) {
  if (std::string_view(setting.key) == "image") return take_count(setting, {0, 4096}, picture.size);
  const Status taken = take_count(setting, {0, 3}, picture.channels);
  if (taken && picture.channels == 2)
    return Error{"channels=2: expected 1 for grey, 3 for colours or 0 for pictures as they are"};
  return taken;
}

Status take_setting(const tw_setting& setting, DataSettings& settings) {
  const std::string key = setting.key, value = setting.value;
  data::ReaderOptions& reader = settings.reader;
  if (key == "index") {
    reader.index = value;
  } else if (key == "field") {
    if (value.find_first_not_of(';') == std::string::npos) return Error{"field: expected a name, found none"};
    reader.fields.push_back(value);
  } else if (key == "decode") {
    return take_decode(value, reader.decodes);
  } else if (key == "image" || key == "channels") {
    return take_picture(setting, reader.picture);
  } else if (key == "threads") {
    std::uint32_t threads = 1;
    const Status taken = take_count(setting, {1, 256}, threads);
    reader.threads = static_cast<int>(threads);
    return taken;
  } else if (key == "memory") {
    return take_size(setting, kLeastMemory, reader.memory_bytes);
  } else if (key == "cache") {
    settings.cache = host::absolute_path(value);
  } else if (key == "cache_limit") {
    return take_size(setting, 1, settings.cache_bytes);
  } else {
    return Error{fmt::format("there is no setting {}{}", key, did_you_mean(key, data_keys()))};
  }
  return Unit{};
}

tw_value shown_bytes(std::string_view bytes) { return {bytes.data(), nullptr, 0, bytes.size(), TW_BYTES, 0}; }

tw_value shown_array(const data::Array& array) {
  return std::visit(
      [&](const auto& values) {
        const bool real = array.values.index() == 0;
        return tw_value{values.data(),
                        array.shape.data(),
                        array.shape.size(),
                        values.size() * sizeof(values[0]),
                        static_cast<std::uint32_t>(real ? TW_ARRAY_FLOAT32 : TW_ARRAY_INT64),
                        0};
      },
      array.values);
}

tw_value shown_field(const data::FieldValue& field) {
  if (const auto* bytes = std::get_if<std::string>(&field)) return shown_bytes(*bytes);
  if (const auto* array = std::get_if<data::Array>(&field)) return shown_array(*array);
  return {nullptr, nullptr, 0, 0, TW_ABSENT, 0};
}

/// The stores of all open data, and what those of closed data were asked.
struct AllData {
  const pid_t process = ::getpid();
  std::mutex mutex;
  std::set<const host::Stores*> open;  // guarded by mutex, as the next one
  world::StoreUses closed;
};

/// A fork begins with none: it may have copied a locked mutex.
AllData& all_data() {
  static std::atomic<AllData*> all = new AllData;
  if (all.load()->process != ::getpid()) all = new AllData;
  return *all;
}

}  // namespace

world::StoreUses data_uses(const world::StoreUses& before) {
  AllData& all = all_data();
  const std::lock_guard lock(all.mutex);
  world::StoreUses uses = all.closed;
  for (const host::Stores* stores : all.open) world::add(uses, stores->uses());
  for (const auto& [store, use] : before) {
    world::StoreUse& now = uses[store];
    now.reads -= use.reads;
    now.bytes -= use.bytes;
    now.writes -= use.writes;
    now.written_bytes -= use.written_bytes;
  }
  return uses;
}

Result<DataSettings> read_data_settings(std::span<const tw_setting> given) {
  DataSettings settings;
  for (const tw_setting& setting : given) {
    if (setting.key == nullptr || setting.value == nullptr) return Error{"a setting without key or value"};
    TW_TRY(take_setting(setting, settings));
  }
  if (settings.reader.index.empty()) return Error{"index: expected a file of tw data index, found none"};
  const auto is_limit = [](const tw_setting& setting) {
    return std::string_view(setting.key) == "cache_limit";
  };
  if (const auto limit = std::ranges::find_if(given, is_limit);
      limit != given.end() && settings.cache.empty())
    return Error{fmt::format("cache_limit={}: expected with cache=FOLDER, which it limits", limit->value)};
  return settings;
}

void StoreTroubles::take(const std::string& trouble) {
  const std::size_t host = trouble.find("://");
  const std::size_t end = host == std::string::npos ? std::string::npos : trouble.find('/', host + 3);
  const std::lock_guard lock(mutex_);
  if (told_.insert(trouble.substr(0, end)).second) rest_ += trouble + '\n';
}

std::string StoreTroubles::rest() {
  const std::lock_guard lock(mutex_);
  return std::exchange(rest_, {});
}

ShardData::ShardData() : process_(::getpid()) {
  const std::lock_guard lock(all_data().mutex);
  all_data().open.insert(&stores_);
}

ShardData::~ShardData() {
  const std::lock_guard lock(all_data().mutex);
  all_data().open.erase(&stores_);
  world::add(all_data().closed, stores_.uses());
}

Result<std::unique_ptr<ShardData>> ShardData::open(const DataSettings& settings) {
  auto data = std::make_unique<ShardData>();
  if (!settings.cache.empty()) TW_TRY(data->stores_.keep_in(settings.cache, settings.cache_bytes));
  TW_TRY(auto reader, data::ShardReader::open(settings.reader, data->stores_));
  data->reader_ = std::move(reader);
  return data;
}

std::string ShardData::foreign() const {
  if (process_ == ::getpid()) return {};
  return fmt::format("the data was opened by process {}, this is its fork {}: it has to open it for itself",
                     process_, ::getpid());
}

Result<bool> ShardData::read(std::span<const std::uint64_t> samples, Duration limit,
                             std::span<tw_value> values) {
  TW_TRY(auto read, reader_->read(samples, limit));
  if (!read) return false;
  shown_ = std::move(*read);
  auto value = values.begin();
  for (const data::ShardReader::Sample& sample : shown_) {
    *value++ = shown_bytes(sample.key);
    for (const data::FieldValue& field : sample.fields) *value++ = shown_field(field);
  }
  return true;
}

}  // namespace tw::bind
