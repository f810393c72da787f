// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "base/cause_text.h"
#include "base/result.h"
#include "base/text/number.h"
#include "base/text/option.h"
#include "base/text/quantity.h"
#include "base/text/text.h"
#include "base/text/text_file.h"
#include "cli/arguments/data_arguments.h"
#include "cli/commands.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/terminal.h"
#include "data/sample_order.h"
#include "data/shards/tar_members.h"
#include "data/shards/tar_writer.h"
#include "host/store/store_files.h"

namespace tw::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostListBytes = 4ULL << 30;

/// A sample that is to be packed.
struct Unpacked {
  std::string key;
  std::vector<std::pair<std::string, std::string>> files{};  ///< field: path
  std::string target{};                                      ///< content of its .cls; empty: none
};

/// Files of a folder that are in no sample: how many, and the first.
struct LeftFiles {
  std::uint64_t count = 0;
  std::string first{};

  void add(const std::string& name) {
    if (count++ == 0) first = name;
  }

  /// what: "without an ending".
  void warn(const std::string& folder, std::string_view what) const {
    if (count == 0) return;
    show_aside(fmt::format("warning: {}: {} {} {} left out, the first of them {}", folder,
                           counted(count, "file"), what, count == 1 ? "is" : "are", first));
  }
};

/// Names of all files under a folder, relative to it and sorted; links are followed. The error is also that
/// of a link to a folder in which it lies.
Result<std::vector<std::string>> files_under(const std::string& folder) {
  std::vector<std::string> names;
  std::vector<fs::path> above{fs::weakly_canonical(folder)};  // the folders in which the iterator is
  std::error_code error;
  constexpr auto kLinks = fs::directory_options::follow_directory_symlink;
  for (fs::recursive_directory_iterator at(folder, kLinks, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code gone;
    if (!at->is_directory(gone)) {
      names.push_back(at->path().lexically_relative(folder).generic_string());
      continue;
    }
    above.resize(static_cast<std::size_t>(at.depth()) + 1);
    fs::path plain = fs::canonical(at->path(), gone);
    if (std::ranges::find(above, plain) != above.end())
      return Error{fmt::format("{}: a link to a folder in which it lies", at->path().string())};
    above.push_back(std::move(plain));
  }
  if (error) return Error{fmt::format("{}: {}", folder, cause_text(error))};
  std::ranges::sort(names);
  return names;
}

/// A file or folder, or what lies in a hidden folder.
bool is_hidden(const std::string& name) {
  return name.starts_with('.') || name.find("/.") != std::string::npos;
}

/// Subfolders of a folder that are not hidden, sorted, links followed: the order of torchvision's
/// ImageFolder. Their places are the numbers of the classes.
Result<std::vector<std::string>> classes_in(const std::string& folder) {
  std::vector<std::string> classes;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    std::string name = at->path().filename().string();
    if (at->is_directory(gone) && !is_hidden(name)) classes.push_back(std::move(name));
  }
  if (error) return Error{fmt::format("{}: {}", folder, cause_text(error))};
  if (classes.empty())
    return Error{fmt::format("{}: no folders in it, --classes expects one for each class", folder)};
  std::ranges::sort(classes);
  return classes;
}

/// used: places of those that have samples.
void warn_of_empty_classes(const std::string& folder, const std::vector<std::string>& classes,
                           const std::set<std::size_t>& used) {
  std::vector<std::string> empty;
  for (std::size_t i = 0; i < classes.size(); ++i)
    if (!used.contains(i)) empty.push_back(classes[i]);
  if (!empty.empty())
    show_aside(fmt::format("warning: {}: {} of {} classes {} no samples, the first of them {}", folder,
                           empty.size(), classes.size(), empty.size() == 1 ? "has" : "have", empty.front()));
}

void print_classes(const std::vector<std::string>& classes) {
  constexpr std::size_t kShown = 10;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, classes.size()); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", i, classes[i]);
  if (classes.size() > kShown) text += fmt::format(" and {} more", classes.size() - kShown);
  print_out("classes: {}\n", text);
}

/// Files of a folder whose names have one key are a sample; with `has_classes`, the folders in it are
/// classes.
Result<std::vector<Unpacked>> samples_of_folder(const std::string& folder, bool has_classes) {
  std::vector<std::string> classes;
  if (has_classes) {
    TW_TRY(classes, classes_in(folder));
  }
  TW_TRY(const auto names, files_under(folder));
  std::map<std::string, Unpacked> samples;
  std::set<std::size_t> used;  // classes
  LeftFiles unnamed, loose;
  for (const std::string& name : names) {
    const data::MemberName parts = data::split_member(name);
    const std::string path = (fs::path(folder) / name).string();
    std::error_code gone;
    if (has_classes && name.find('/') == std::string::npos) {
      loose.add(name);
    } else if (parts.field.empty() || is_hidden(name) || !fs::is_regular_file(path, gone)) {
      unnamed.add(name);
    } else {
      Unpacked& sample = samples[std::string(parts.key)];
      sample.key = parts.key;
      sample.files.emplace_back(parts.field, path);
      if (!has_classes) continue;
      const auto place = std::ranges::lower_bound(classes, name.substr(0, name.find('/'))) - classes.begin();
      sample.target = std::to_string(place);
      used.insert(static_cast<std::size_t>(place));
    }
  }
  loose.warn(folder, "beside the folders of classes");
  unnamed.warn(folder, "without an ending (such as .jpg), hidden or not plain");
  warn_of_empty_classes(folder, classes, used);
  if (has_classes) print_classes(classes);
  std::vector<Unpacked> all;
  for (auto& [key, sample] : samples) {
    std::ranges::sort(sample.files);
    all.push_back(std::move(sample));
  }
  return all;
}

/// A sample has each field once.
Status check_fields(const Unpacked& sample) {
  std::map<std::string, std::string> paths;
  if (!sample.target.empty()) paths["cls"] = "its class (of --classes, or of the list)";
  for (const auto& [field, path] : sample.files) {
    const auto [known, is_new] = paths.try_emplace(field, path);
    if (!is_new)
      return Error{
          fmt::format("the field {} comes twice in a sample: by {} and by {}; leave one out, or rename it",
                      field, known->second, path)};
  }
  return Unit{};
}

/// "cls, jpg".
std::string fields_of(const Unpacked& sample) {
  std::set<std::string> fields;
  if (!sample.target.empty()) fields.insert("cls");
  for (const auto& [field, path] : sample.files) fields.insert(field);
  return fmt::format("{}", fmt::join(fields, ", "));
}

/// A program that names a field refuses shards in which one sample lacks it.
void warn_of_other_fields(const std::string& source, const std::vector<Unpacked>& samples) {
  std::map<std::string, std::uint64_t> counts;  // by their fields
  for (const Unpacked& sample : samples) ++counts[fields_of(sample)];
  if (counts.size() < 2) return;
  const auto& [most, count] =
      *std::ranges::max_element(counts, {}, &std::pair<const std::string, std::uint64_t>::second);
  const std::uint64_t others = samples.size() - count;
  const Unpacked& first = *std::ranges::find_if(
      samples, [&most = most](const Unpacked& sample) { return fields_of(sample) != most; });
  show_aside(
      fmt::format("warning: {}: {} of {} samples {} other fields than most ({}), the first of them {} "
                  "({})",
                  source, others, samples.size(), others == 1 ? "has" : "have", most,
                  first.files.front().second, fields_of(first)));
}

/// Fields of a line of a CSV file, as RFC 4180 writes them.
std::vector<std::string> csv_fields(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool is_quote = line[i] == '"';
    if (is_quote && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[i++];
    } else if (is_quote) {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += line[i];
    }
  }
  return fields;
}

/// The sample of a line "PATH" or "PATH,CLASS".
Result<Unpacked> sample_of_line(const std::string& line, const fs::path& folder) {
  // A path may have commas that nobody quoted: the last field is the class.
  const bool is_quoted = line.find('"') != std::string::npos;
  const std::size_t comma = line.rfind(',');
  std::vector<std::string> fields = csv_fields(line);
  if (!is_quoted && fields.size() > 2) fields = {line.substr(0, comma), line.substr(comma + 1)};
  if (fields.size() > 2) return Error{fmt::format("expected PATH or PATH,CLASS, found {}", line)};
  Unpacked sample;
  if (fields.size() == 2) sample.target = trimmed(fields[1]);
  if (fields.size() == 2 && !parse_number<std::int64_t>(sample.target))
    return Error{
        fmt::format("expected PATH,CLASS with a whole number, found {}; where classes have names, one folder "
                    "for each needs no list: tw data pack FOLDER --classes",
                    line)};
  const std::string path = (folder / fields[0]).string();
  const std::string field = data::split_member(fields[0]).field;
  if (field.empty()) return Error{fmt::format("{} has no ending such as .jpg", fields[0])};
  std::error_code error;
  if (!fs::exists(path, error)) return Error{fmt::format("no such file: {}", path)};
  sample.files.emplace_back(field, path);
  return sample;
}

/// A first line that begins with the field "path", in any case, is left out. Paths are relative to the
/// folder.
Result<std::vector<Unpacked>> samples_of_list(std::istream& lines, const fs::path& folder) {
  std::vector<Unpacked> all;
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    if (++number == 1) line = std::string(without_byte_order_mark(line));
    while (line.ends_with('\r') || line.ends_with(' ')) line.pop_back();
    if (line.empty() || (number == 1 && lower(csv_fields(line).front()) == "path")) continue;
    auto sample = sample_of_line(line, folder);
    if (!sample)
      return Error{fmt::format("line {}{}: {}", number,
                               number == 1 ? " (a header would begin with path)" : "",
                               sample.error().message)};
    sample.value().key = fmt::format("{:09}", all.size());
    all.push_back(std::move(sample).value());
  }
  return all;
}

Result<std::vector<Unpacked>> samples_found(const DataArguments& arguments) {
  const std::string& source = arguments.source;
  if (source == "-") return samples_of_list(std::cin, ".");
  if (fs::is_directory(source)) return samples_of_folder(source, arguments.classes);
  TW_TRY(const auto text, read_text_file(source, kMostListBytes));
  std::istringstream lines(text);
  auto samples = samples_of_list(lines, fs::path(source).parent_path());
  if (!samples) return Error{fmt::format("{}: {}", source, samples.error().message)};
  return samples;
}

Result<std::vector<Unpacked>> samples_of(const DataArguments& arguments) {
  TW_TRY(auto samples, samples_found(arguments));
  for (const Unpacked& sample : samples) TW_TRY(check_fields(sample));
  warn_of_other_fields(arguments.source, samples);
  return samples;
}

Status add_sample(const Unpacked& sample, data::TarWriter& tar) {
  for (const auto& [field, path] : sample.files) {
    TW_TRY(const auto content, read_text_file(path, kMostListBytes));
    if (const Status added = tar.add(sample.key + "." + field, content); !added) return added;
  }
  if (sample.target.empty()) return Unit{};
  return tar.add(sample.key + ".cls", sample.target);
}

std::string shard_name(const std::string& out, std::uint64_t number) {
  return fmt::format("{}-{:06}.tar", out, number);
}

/// Shards OUT-NUMBER.tar that are there.
Result<std::vector<std::string>> shards_there(const std::string& out, host::StoreFiles& files) {
  const std::size_t slash = out.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : out.substr(0, slash + 1);
  const std::string begin = out.substr(slash == std::string::npos ? 0 : slash + 1) + "-";
  TW_TRY(const auto names, files.list(folder));
  std::vector<std::string> shards;
  for (const std::string& name : names) {
    if (!name.starts_with(begin) || !name.ends_with(".tar")) continue;
    const std::string number = name.substr(begin.size(), name.size() - begin.size() - 4);
    if (parse_number<std::uint64_t>(number)) shards.push_back(out + "-" + number + ".tar");
  }
  return shards;
}

/// The first sample that is one of these shards, which are to be replaced; empty: none is.
std::string packed_again(const std::vector<Unpacked>& samples, const std::vector<std::string>& shards) {
  std::set<fs::path> replaced;
  for (const std::string& shard : shards) replaced.insert(fs::weakly_canonical(shard));
  for (const Unpacked& sample : samples)
    for (const auto& [field, path] : sample.files)
      if (path.ends_with(".tar") && replaced.contains(fs::weakly_canonical(path))) return path;
  return {};
}

/// Shards of about this size, with the samples in an order by chance.
class Packing {
 public:
  Packing(std::string out, std::uint64_t shard_bytes) : out_(std::move(out)), shard_bytes_(shard_bytes) {}

  Status add(const Unpacked& sample) {
    if (!tar_) tar_.emplace();
    if (const Status added = add_sample(sample, *tar_); !added) return added;
    return tar_->bytes() >= shard_bytes_ ? finish() : Status(Unit{});
  }

  Status finish() {
    if (!tar_) return Unit{};
    auto tar = tar_->finish();
    tar_.reset();
    if (!tar) return tar.error();
    const std::string name = shard_name(out_, shards_++);
    bytes_ += tar.value().size();
    const std::vector<std::span<const std::byte>> parts{std::as_bytes(std::span(tar.value()))};
    return files_.write(name, parts);
  }

  std::uint64_t shards() const { return shards_; }

  bool wrote(const std::string& name) const {
    for (std::uint64_t number = 0; number < shards_; ++number)
      if (shard_name(out_, number) == name) return true;
    return false;
  }

  std::uint64_t bytes() const { return bytes_; }

 private:
  std::string out_;
  std::uint64_t shard_bytes_;
  host::StoreFiles files_;
  std::optional<data::TarWriter> tar_;
  std::uint64_t shards_ = 0, bytes_ = 0;
};

/// What can be seen of the arguments alone; empty: nothing is wrong.
std::string fault_in(const DataArguments& arguments) {
  const std::string& out = arguments.out;
  if (std::string fault = fault_in_out(out); !fault.empty()) return fault;
  if (out.empty() || out.ends_with('/'))
    return fmt::format("-o \"{}\": expected the begin of the names, such as {}train", out, out);
  if (arguments.classes && !fs::is_directory(arguments.source))
    return fmt::format(
        "--classes: {} is no folder, so its folders cannot be classes; a list has them in its lines: "
        "PATH,CLASS",
        arguments.source);
  return {};
}

}  // namespace

int pack_data(const DataArguments& arguments) {
  if (const std::string fault = fault_in(arguments); !fault.empty()) return complain(fault, kUsage);
  const auto shard_bytes = parse_size(arguments.shard_size);
  if (!shard_bytes)
    return complain(fmt::format("--shard-size {}: expected a size such as 256MiB", arguments.shard_size),
                    kUsage);
  const auto seed = parse_number<std::uint64_t>(arguments.seed);
  if (!seed) return complain(fmt::format("--seed {}: expected a whole number", arguments.seed), kUsage);
  const auto samples = samples_of(arguments);
  if (!samples) return complain(samples.error().message, kUsage);
  const std::size_t count = samples.value().size();
  if (count == 0) return complain(fmt::format("{}: no samples", arguments.source), kUsage);
  const fs::path folder = fs::path(arguments.out).parent_path();
  if (!folder.empty() && arguments.out.find("://") == std::string::npos) {
    std::error_code failed;
    fs::create_directories(folder, failed);  // what fails here fails again as the first shard is written
  }
  host::StoreFiles files;
  const auto there = shards_there(arguments.out, files);
  if (!there) return complain(there.error().message, kFailed);
  if (!there.value().empty() && !arguments.force)
    return complain(
        fmt::format("{} is there; give another name, or --force to have the shards of this name replaced",
                    there.value().front()),
        kUsage);
  if (const std::string again = packed_again(samples.value(), there.value()); !again.empty())
    return complain(
        fmt::format("-o {}: {}, a shard of this name, would be packed as a sample; choose another -o",
                    arguments.out, again),
        kUsage);
  Packing packing(arguments.out, *shard_bytes);
  const data::SampleOrder order(*seed, count);
  ProgressLine line;
  Status done = Unit{};
  for (std::size_t i = 0; done && i < count; ++i) {
    done = packing.add(samples.value()[order.index_of(i)]);
    line.show(fmt::format("{} of {} samples", i + 1, count),
              static_cast<double>(i + 1) / static_cast<double>(count));
  }
  if (done) done = packing.finish();
  for (const std::string& old : there.value())
    if (done && !packing.wrote(old)) done = files.remove(old);
  line.clear();
  if (!done) return complain(done.error().message, kFailed);
  const std::string first = shard_name(arguments.out, 0),
                    last = shard_name(arguments.out, packing.shards() - 1);
  print_out("{}: {} in {}, {} bytes\n", first == last ? first : first + " to " + last,
            counted(count, "sample"), counted(packing.shards(), "shard"), packing.bytes());
  return kDone;
}

}  // namespace tw::cli
