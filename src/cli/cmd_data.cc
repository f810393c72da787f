// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "base/text/option.h"
#include "base/text/size.h"
#include "base/text/text.h"
#include "cli/arguments/data_arguments.h"
#include "cli/commands.h"
#include "cli/run/data_doors.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/terminal.h"
#include "data/shards/decode.h"
#include "data/shards/index_shards.h"
#include "data/shards/shard_index.h"
#include "host/store/store_files.h"
#include "host/store/stores.h"

namespace tw::cli {
namespace {

/// "s3://bucket/folder/": its tar files. Anything else: a name, with braces perhaps.
Result<std::vector<std::string>> shards_in(const std::vector<std::string>& given) {
  std::vector<std::string> all;
  for (const std::string& one : given) {
    auto names = one.ends_with('/') ? host::StoreFiles().list(one) : data::expand_braces(one);
    if (!names) return names.error();
    for (const std::string& name : names.value()) {
      if (!one.ends_with('/')) all.push_back(name);
      if (one.ends_with('/') && name.ends_with(".tar")) all.push_back(one + name);
    }
  }
  if (all.empty()) return Error{fmt::format("{}: no tar files", fmt::join(given, " "))};
  return all;
}

/// Files beside the index are named as it sees them, so that all may move together.
std::string name_for(const std::string& object, const std::filesystem::path& index_folder) {
  if (object.find("://") != std::string::npos) return object;
  const auto absolute = std::filesystem::absolute(object).lexically_normal();
  const auto relative = absolute.lexically_relative(index_folder);
  return relative.empty() || *relative.begin() == ".." ? absolute.string() : relative.string();
}

void print_facts(const std::string& name, const data::ShardIndex& index) {
  std::string fields;
  for (const std::string& field : index.field_names())
    fields += fmt::format("{}{} ({})", fields.empty() ? "" : ", ", field, index.count_of(field));
  print_out("{}: {} in {}, {} bytes; fields: {}; identity {}\n", name, counted(index.size(), "sample"),
            counted(index.shards().size(), "shard"), index.bytes(), fields, to_string(index.identity()));
}

int index_data(const DataArguments& arguments) {
  const auto shards = shards_in(arguments.shards);
  if (!shards) return complain(shards.error().message, kUsage);
  host::Stores stores(warn_of_stores());
  ProgressLine line;
  const std::size_t count = shards.value().size();
  data::Indexing how{.contents = arguments.contents};
  how.progress = [&](std::size_t done) {
    line.show(fmt::format("{} of {}", done, counted(count, "shard")),
              static_cast<double>(done) / static_cast<double>(count));
  };
  auto index = data::index_shards(shards.value(), stores, how);
  line.clear();
  if (!index) return complain(index.error().message, kFailed);
  const auto folder = std::filesystem::absolute(arguments.out).lexically_normal().parent_path();
  index.value().rename([&](const std::string& object) { return name_for(object, folder); });
  const std::string bytes = index.value().encode();
  host::StoreFiles files;
  const std::vector<std::span<const std::byte>> parts{std::as_bytes(std::span(bytes))};
  Status written = files.write(arguments.out + ".part", parts);
  if (written) written = files.rename(arguments.out + ".part", arguments.out);
  if (!written) return complain(written.error().message, kFailed);
  print_facts(arguments.out, index.value());
  return kDone;
}

int list_data(const DataArguments& arguments) {
  const auto limit = parse_count("--limit", arguments.limit, {.least = 0, .most = 1'000'000'000});
  if (!limit) return complain(limit.error().message, kUsage);
  const auto index = data::read_shard_index(arguments.index);
  if (!index) return complain(index.error().message, kFailed);
  print_facts(arguments.index, index.value());
  const std::uint64_t shown = std::min(limit.value(), index.value().size());
  for (std::uint64_t i = 0; i < shown; ++i) {
    const auto sample = index.value().sample(i);
    std::string fields;
    for (const data::FieldPlace& place : sample.fields)
      fields += fmt::format(" {}@{}+{}", index.value().field_names()[place.name], place.offset, place.length);
    print_out("{} {} {}{}\n", i, index.value().shards()[sample.shard].object, sample.key, fields);
  }
  if (shown < index.value().size()) print_out("... {} more (--limit)\n", index.value().size() - shown);
  return kDone;
}

/// Faults of an index for a run.
std::vector<std::string> faults_of(const data::ShardIndex& index, host::Stores& stores) {
  std::vector<std::string> faults;
  ProgressLine line;
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < index.shards().size(); ++i) {
    const data::Shard& shard = index.shards()[i];
    line.show(fmt::format("{} of {}", i, counted(index.shards().size(), "shard")),
              static_cast<double>(i) / static_cast<double>(index.shards().size()));
    const auto digest = data::digest_contents(stores, shard);
    if (!digest) faults.push_back(digest.error().message);
    if (digest && !shard.contents.empty() && digest.value() != shard.contents)
      faults.push_back(fmt::format("{}: its bytes are others than those of the index", shard.object));
    for (; next < index.size() && index.sample(next).shard == i; ++next) {
      if (!digest) continue;
      const auto sample = index.sample(next);
      for (const data::FieldPlace& place : sample.fields) {
        const std::string& field = index.field_names()[place.name];
        if (!data::is_decoded(field) || place.length == 0) continue;
        const auto bytes = world::read_now(stores, {shard.object, place.offset, place.length, shard.version});
        if (!bytes) faults.push_back(bytes.error().message);
        if (!bytes || field == "txt" || field == "json") continue;  // which may hold anything
        const auto decoded = data::decode_field(field, bytes.value(), data::FieldUse::input, {}, 0);
        if (!decoded)
          faults.push_back(
              fmt::format("{}: {}.{}: {}", shard.object, sample.key, field, decoded.error().message));
      }
    }
  }
  return faults;
}

int verify_data(const DataArguments& arguments) {
  const auto index = data::read_shard_index(arguments.index);
  if (!index) return complain(index.error().message, kFailed);
  host::Stores stores(warn_of_stores());
  const std::vector<std::string> faults = faults_of(index.value(), stores);
  for (const std::string& fault : faults) complain(fault, kFailed);
  if (!faults.empty())
    return complain(fmt::format("{}: {}", arguments.index, counted(faults.size(), "fault")), kFailed);
  print_facts(arguments.index, index.value());
  return kDone;
}

}  // namespace

void describe_data(CLI::App& app, DataArguments& arguments) {
  CLI::App* data = app.add_subcommand("data", "Samples in tar files, here or in object stores");
  data->require_subcommand(1);
  CLI::App* index = data->add_subcommand("index", "Look at shards and write down where each sample lies");
  index
      ->add_option(
          "SHARD", arguments.shards,
          "tar files: paths, or URLs with file, http, https, s3, gs or az; {000..127} stands for all "
          "numbers, a name with / at its end for all tar files there (a folder, or s3)")
      ->required();
  index->add_option("-o,--out", arguments.out, "the .twi file to write")->required();
  index->add_flag("--contents", arguments.contents,
                  "read all bytes and keep their digests: copies in other places have the same identity");
  index->footer(
      "Examples:\n"
      "  tw data index 's3://bucket/train-{000000..000127}.tar' -o train.twi\n"
      "  tw data index shards/ -o train.twi");
  CLI::App* list = data->add_subcommand("ls", "What an index says");
  list->add_option("INDEX.twi", arguments.index, "the index")->required();
  list->add_option("--limit", arguments.limit, "samples that are shown")->capture_default_str();
  CLI::App* verify = data->add_subcommand("verify", "Read all that an index names, and decode it");
  verify->add_option("INDEX.twi", arguments.index, "the index")->required();
  CLI::App* pack = data->add_subcommand("pack", "Write samples into shards, in an order by chance");
  pack->add_option(
          "SOURCE", arguments.source,
          "a folder: files with one name but for what follows its first dot are a sample; or a file with "
          "lines PATH,CLASS; or - for such lines on stdin")
      ->required();
  pack->add_option("-o,--out", arguments.out, "the begin of the names: OUT-000000.tar; also s3://BUCKET/NAME")
      ->required();
  pack->add_option("--shard-size", arguments.shard_size, "of a shard, about")->capture_default_str();
  pack->add_option("--seed", arguments.seed, "decides the order")->capture_default_str();
  pack->add_flag(
      "--classes", arguments.classes,
      "the folders in SOURCE are classes, numbered by their names: each sample gets its number as .cls");
  pack->footer(
      "Examples:\n"
      "  tw data pack pictures/ --classes -o shards/train\n"
      "  tw data pack list.csv -o s3://bucket/train");
  data->footer("docs/data.md says how a run uses them.");
}

int run_data(const DataArguments& arguments, const std::string& command) {
  if (command == "index") return index_data(arguments);
  if (command == "ls") return list_data(arguments);
  if (command == "pack") return pack_data(arguments);
  return verify_data(arguments);
}

}  // namespace tw::cli
