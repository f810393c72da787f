// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "base/text/option.h"
#include "base/text/quantity.h"
#include "base/text/text.h"
#include "cli/arguments/data_arguments.h"
#include "cli/commands.h"
#include "cli/run/store_warnings.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/terminal.h"
#include "data/shards/index_shards.h"
#include "data/shards/shard_index.h"
#include "data/shards/verify_shards.h"
#include "host/store/s3_place.h"
#include "host/store/store_files.h"
#include "host/store/stores.h"

namespace tw::cli {
namespace {

bool has_scheme(const std::string& name) { return name.find("://") != std::string::npos; }

/// What is listed and written: files of this machine, and s3.
bool is_in_store_without_folders(const std::string& name) { return has_scheme(name) && !host::is_s3(name); }

/// A tar by its name that tw data index does not take from a folder.
bool is_other_tar(const std::string& name) {
  constexpr std::array<std::string_view, 8> kEndings = {".tar",    ".tgz",     ".tar.gz", ".tar.zst",
                                                        ".tar.xz", ".tar.bz2", ".txz",    ".tbz2"};
  const std::string small = lower(name);
  return !name.ends_with(".tar") &&
         std::ranges::any_of(kEndings, [&](std::string_view ending) { return small.ends_with(ending); });
}

bool has_tars(const std::filesystem::path& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.ends_with(".tar") || is_other_tar(name)) return true;
  }
  return false;
}

/// In a folder, only files named *.tar are taken. Subfolders with tars are named, too; in a store, where
/// nobody looks into them, all.
void warn_of_others(const std::string& folder, const host::StoreFiles::Content& content) {
  std::vector<std::string> others;
  std::ranges::copy_if(content.files, std::back_inserter(others), is_other_tar);
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    if (at->is_directory(gone) && has_tars(at->path()))
      others.push_back(at->path().filename().string() + "/");
  }
  constexpr std::string_view kTaken = "only files named *.tar in the folder itself are taken";
  if (!others.empty())
    show_aside(fmt::format("warning: {}: tars at {} are left out, the first of them {}; {}", folder,
                           counted(others.size(), "place"), *std::ranges::min_element(others), kTaken));
  const std::size_t inner = content.folders.size();
  if (inner > 0)
    show_aside(fmt::format("warning: {}: {} {} left out, the first of them {}; {}", folder,
                           counted(inner, "subfolder"), inner == 1 ? "is" : "are", content.folders.front(),
                           kTaken));
}

int add_folder(const std::string& folder, std::vector<std::string>& all) {
  if (is_in_store_without_folders(folder))
    return complain(
        fmt::format("{}: folders of this machine and of s3 are listed, no others; name the shards, "
                    "such as {}train-{{000000..000127}}.tar",
                    folder, folder),
        kUsage);
  const auto content = host::StoreFiles().content(folder);
  if (!content) return complain(content.error().message, has_scheme(folder) ? kFailed : kUsage);
  for (const std::string& name : content.value().files)
    if (name.ends_with(".tar")) all.push_back(folder + name);
  warn_of_others(folder, content.value());
  return kDone;
}

/// "s3://bucket/folder/", or a folder of this machine: its tar files. Anything else: a name, with braces
/// perhaps. The code of the complaint is 0 where there is none.
int add_shards(const std::string& given, std::vector<std::string>& all) {
  if (given.ends_with('/')) return add_folder(given, all);
  std::error_code error;
  if (!has_scheme(given) && std::filesystem::is_directory(given, error)) return add_folder(given + "/", all);
  const bool is_there = !has_scheme(given) && std::filesystem::exists(given, error);
  if (!has_scheme(given) && given.find_first_of("*?") != std::string::npos && !is_there)
    return complain(
        fmt::format(
            "{}: * and ? are for the shell (without quotes); or name the folder for all tar files there",
            given),
        kUsage);
  if (is_there) {
    all.push_back(given);  // braces are a part of its name
    return kDone;
  }
  const auto names = data::expand_braces(given);
  if (!names) return complain(names.error().message, kUsage);
  for (const std::string& name : names.value()) {
    if (name.empty())
      return complain(fmt::format("SHARD \"{}\": expected a name, found an empty one", given), kUsage);
    all.push_back(name);
  }
  return kDone;
}

/// Why `out` is not replaced by an index; empty: it may be.
std::string why_kept(const std::filesystem::path& out) {
  std::error_code error;
  const auto kind = std::filesystem::status(out, error).type();
  if (kind == std::filesystem::file_type::not_found) return {};
  if (kind == std::filesystem::file_type::directory)
    return fmt::format("it is a folder; name a file in it, such as {}", (out / "train.twi").string());
  if (kind == std::filesystem::file_type::regular) {
    std::string begin(data::kIndexMagic.size(), '\0');
    std::ifstream file(out, std::ios::binary);
    const bool is_index = file.read(begin.data(), std::ssize(begin)) && begin == data::kIndexMagic;
    if (is_index || std::filesystem::is_empty(out, error)) return {};
  }
  return "it is there and is no index, so it is not replaced; give another name, or remove it first";
}

/// Before anything is read that takes long.
int check_out(const std::string& out) {
  if (out.empty())
    return complain("-o: expected the name of a file, such as train.twi, found an empty one", kUsage);
  if (const std::string fault = fault_in_out(out); !fault.empty()) return complain(fault, kUsage);
  const auto folder = std::filesystem::absolute(out).parent_path();
  if (!has_scheme(out) && !std::filesystem::is_directory(folder))
    return complain(fmt::format("-o {}: there is no folder {}", out, folder.string()), kUsage);
  const std::string why = has_scheme(out) ? "" : why_kept(out);
  if (!why.empty()) return complain(fmt::format("-o {}: {}", out, why), kUsage);
  return kDone;
}

/// The complaint is printed; nothing then.
std::optional<data::ShardIndex> index_at(const std::string& path) {
  auto index = data::read_shard_index(path);
  if (index) return std::move(index).value();
  complain(index.error().message, kUsage);
  return std::nullopt;
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
  if (const int wrong = check_out(arguments.out); wrong != kDone) return wrong;
  std::vector<std::string> shards;
  for (const std::string& given : arguments.shards)
    if (const int wrong = add_shards(given, shards); wrong != kDone) return wrong;
  if (shards.empty())
    return complain(fmt::format("{}: no tar files", fmt::join(arguments.shards, " ")), kUsage);
  if (std::ranges::find(shards, arguments.out) != shards.end())
    return complain(fmt::format("-o {}: it is one of the shards; give the index another name", arguments.out),
                    kUsage);
  host::Stores stores(warn_of_stores());
  ProgressLine line;
  const std::size_t count = shards.size();
  data::Indexing how{.contents = arguments.contents};
  how.progress = [&](std::size_t done) {
    line.show(fmt::format("{} of {}", done, counted(count, "shard")),
              static_cast<double>(done) / static_cast<double>(count));
  };
  how.warn = [&](const std::string& text) {
    line.clear();
    show_aside("warning: " + text);
  };
  auto index = data::index_shards(shards, stores, how);
  line.clear();
  if (!index) return complain(index.error().message, index.error().lasting ? kUsage : kFailed);
  const auto folder = std::filesystem::absolute(arguments.out).lexically_normal().parent_path();
  index.value().rename([&](const std::string& object) { return name_for(object, folder); });
  const std::string bytes = index.value().encode();
  host::StoreFiles files;
  const std::vector<std::span<const std::byte>> parts{std::as_bytes(std::span(bytes))};
  const bool at_once = world::appears_whole(arguments.out);
  const std::string first = at_once ? arguments.out : arguments.out + ".part";
  Status written = files.write(first, parts);
  if (written && !at_once) written = files.rename(first, arguments.out);
  if (!written) return complain(written.error().message, kFailed);
  print_facts(arguments.out, index.value());
  return kDone;
}

int list_data(const DataArguments& arguments) {
  const auto limit = parse_count("--limit", arguments.limit, {.least = 0, .most = 1'000'000'000});
  if (!limit) return complain(limit.error().message, kUsage);
  const auto index = index_at(arguments.index);
  if (!index) return kUsage;
  print_facts(arguments.index, *index);
  const std::uint64_t shown = std::min(limit.value(), index->size());
  for (std::uint64_t i = 0; i < shown; ++i) {
    const auto sample = index->sample(i);
    std::string fields;
    for (const data::FieldPlace& place : sample.fields)
      fields += fmt::format(" {}@{}+{}", index->field_names()[place.name], place.offset, place.length);
    print_out("{} {} {}{}\n", i, index->shards()[sample.shard].object, sample.key, fields);
  }
  if (shown < index->size()) print_out("... {} more (--limit)\n", index->size() - shown);
  return kDone;
}

int verify_data(const DataArguments& arguments) {
  const auto index = index_at(arguments.index);
  if (!index) return kUsage;
  host::Stores stores(warn_of_stores());
  ProgressLine line;
  const std::size_t count = index->shards().size();
  const std::vector<std::string> faults = data::faults_of(*index, stores, {.progress = [&](std::size_t done) {
    line.show(fmt::format("{} of {}", done, counted(count, "shard")),
              static_cast<double>(done) / static_cast<double>(count));
  }});
  line.clear();
  for (const std::string& fault : faults) complain(fault, kFailed);
  if (!faults.empty())
    return complain(fmt::format("{}: {}", arguments.index, counted(faults.size(), "fault")), kFailed);
  print_facts(arguments.index, *index);
  return kDone;
}

}  // namespace

std::string fault_in_out(const std::string& out) {
  if (!has_scheme(out)) return {};
  const auto name = host::parse_s3(out);
  if (host::is_s3(out) && !name) return fmt::format("-o {}", name.error().message);
  if (name && !name.value().key.empty() && !name.value().key.ends_with('/')) return {};
  return fmt::format("-o {}: expected a path or s3://BUCKET/NAME", out);
}

void describe_data(CLI::App& app, DataArguments& arguments) {
  CLI::App* data = app.add_subcommand("data", "Index, list, verify and pack shards of samples");
  data->require_subcommand(1);
  CLI::App* index = data->add_subcommand("index", "Index shards: write down where each sample lies");
  index->add_option("SHARD", arguments.shards, "tar files, URLs, ranges {000..127}, or folders")->required();
  index->add_option("-o,--out", arguments.out, "the .twi file to write")->required();
  index->add_flag("--contents", arguments.contents,
                  "digest all bytes, so that copies elsewhere have the same identity");
  index->footer(
      "A SHARD is a path, or a URL with file, http, https, s3, gs or az. {000..127} stands for all\n"
      "numbers; a folder, or s3://BUCKET/NAME/ with / at its end, for all tar files there.\n"
      "\n"
      "Examples:\n"
      "  tw data index 's3://bucket/train-{000000..000127}.tar' -o train.twi\n"
      "  tw data index shards/ -o train.twi");
  CLI::App* list = data->add_subcommand("ls", "List the samples of an index");
  list->add_option("INDEX.twi", arguments.index, "the index")->required();
  list->add_option("--limit", arguments.limit, "samples to show (20)");
  list->footer("Example:\n  tw data ls train.twi --limit 3");
  CLI::App* verify = data->add_subcommand("verify", "Read and decode every sample of an index");
  verify->add_option("INDEX.twi", arguments.index, "the index")->required();
  verify->footer("Example:\n  tw data verify train.twi");
  CLI::App* pack = data->add_subcommand("pack", "Write samples into shards, in a random order");
  pack->add_option("SOURCE", arguments.source,
                   "folder with samples, a file with lines PATH,CLASS, or - for stdin")
      ->required();
  pack->add_option("-o,--out", arguments.out, "the begin of the names: OUT-000000.tar; also s3://BUCKET/NAME")
      ->required();
  pack->add_option("--shard-size", arguments.shard_size, "size of a shard, about (256MiB)");
  pack->add_option("--seed", arguments.seed, "decides the order (1)");
  pack->add_flag("--force", arguments.force, "replace existing shards of this name");
  pack->add_flag("--classes", arguments.classes,
                 "the folders in SOURCE are classes; each sample gets its number as .cls");
  pack->footer(
      "The files of a folder that share a name up to its first dot are one sample.\n"
      "\n"
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
