// SPDX-License-Identifier: Apache-2.0
#include "launch/user_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/cause_text.h"
#include "base/digest.h"
#include "base/result.h"
#include "base/text/fields.h"
#include "base/text/text_file.h"
#include "launch/run_store.h"

namespace tw::launch {
namespace {

namespace fs = std::filesystem;

/// Data does not belong among the files of a program.
constexpr std::uint64_t kMostProgramBytes = 1ULL << 30;
constexpr const char* kStagedList = "program.list";

bool is_below(const fs::path& path) {
  return !path.empty() && path.is_relative() && *path.begin() != ".." && path != ".";
}

/// A line of a list of files holds it.
bool is_plain_name(const std::string& path) {
  return std::ranges::none_of(path, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\\'; });
}

/// What tools leave in folders of programs.
bool is_litter(const fs::path& path) {
  const std::string name = path.filename().string();
  return name == "__pycache__" || name == ".git" || name == ".venv";
}

/// Why an entry of a folder that is no file is not copied.
std::string why_left_out(const fs::directory_entry& entry) {
  std::error_code error;
  if (!entry.is_symlink(error)) return "neither a file nor a folder";
  const std::string target = fs::read_symlink(entry.path(), error).string();
  if (entry.is_directory(error)) return fmt::format("a link to the folder {}", target);
  return fmt::format("a link to {}, which is not there", target);
}

class Search {
 public:
  explicit Search(const ProgramWish& wish) : folder_(wish.folder), warn_(wish.warn) {}

  Status add(const std::string& written) {
    const fs::path path = fs::path(written).lexically_normal();
    const fs::path relative = path.has_filename() ? path : path.parent_path();
    const auto wrong = [&](const std::string& what) {
      return Error{fmt::format("program.files: {}: {}", written, what)};
    };
    if (written != "." && !is_below(relative))
      return wrong("expected a path below the folder of the run file");
    std::error_code error;
    const fs::path there = fs::path(folder_) / relative;
    if (fs::is_regular_file(there, error)) return take(relative);
    if (!fs::is_directory(there, error)) return wrong(fmt::format("no such file or folder in {}", folder_));
    return take_folder(written == "." ? fs::path() : relative, written);
  }

  const std::set<std::string>& files() const { return files_; }

  /// The folders without a file or folder that is copied.
  std::vector<std::string> empty_folders() const {
    std::vector<std::string> empty;
    for (const std::string& folder : folders_)
      if (!has_below(files_, folder) && !has_below(folders_, folder)) empty.push_back(folder);
    return empty;
  }

  std::uint64_t bytes() const { return bytes_; }

 private:
  static bool has_below(const std::set<std::string>& paths, const std::string& folder) {
    const auto next = paths.lower_bound(folder + "/");
    return next != paths.end() && next->starts_with(folder + "/");
  }

  Status take_folder(const fs::path& folder, const std::string& written) {
    std::error_code error;
    const fs::path there = fs::path(folder_) / folder;
    if (!folder.empty()) folders_.insert(folder.string());
    for (auto entry = fs::recursive_directory_iterator(there, error); entry != fs::end(entry);
         entry.increment(error)) {
      if (error) return Error{fmt::format("program.files: {}: {}", written, cause_text(error))};
      if (is_litter(entry->path())) {
        entry.disable_recursion_pending();
        continue;
      }
      if (const Status taken = take(*entry, folder / entry->path().lexically_relative(there)); !taken)
        return taken;
    }
    return Unit{};
  }

  Status take(const fs::directory_entry& entry, const fs::path& relative) {
    std::error_code error;
    if (entry.is_regular_file(error)) return take(relative);
    if (!entry.is_directory(error) || entry.is_symlink(error)) {
      warn_(fmt::format("program.files: {}: {}; machines will lack it", relative.string(),
                        why_left_out(entry)));
      return Unit{};
    }
    if (!is_plain_name(relative.string())) return wrong_name(relative);
    folders_.insert(relative.string());
    return Unit{};
  }

  static Error wrong_name(const fs::path& relative) {
    return Error{fmt::format("program.files: {}: a name without control characters and \\ is expected",
                             relative.string())};
  }

  Status take(const fs::path& relative) {
    if (!is_plain_name(relative.string())) return wrong_name(relative);
    if (!files_.insert(relative.string()).second) return Unit{};
    std::error_code error;
    bytes_ += fs::file_size(fs::path(folder_) / relative, error);
    if (bytes_ <= kMostProgramBytes) return Unit{};
    return Error{
        "program.files: more than 1 GiB; data belongs on the machines or in a store, not beside the program"};
  }

  std::string folder_;
  std::function<void(const std::string&)> warn_;
  std::set<std::string> files_, folders_;
  std::uint64_t bytes_ = 0;
};

/// A word of the command that is a script: it ends so, or it is a file beside the run file.
Status check_script(const ProgramWish& wish, const std::vector<std::string>& files) {
  for (const std::string& word : wish.command) {
    const fs::path path = fs::path(word).lexically_normal();
    if (word.starts_with('-') || !is_below(path) || word.find('=') != std::string::npos) continue;
    if (std::ranges::find(files, path.string()) != files.end()) continue;
    std::error_code error;
    const bool here = fs::is_regular_file(fs::path(wish.folder) / path, error);
    const std::string end = path.extension().string();
    if (here)
      return Error{fmt::format("program.files: {} of the command is not among them; machines would lack it",
                               path.string())};
    if (end == ".py" || end == ".sh")
      return Error{fmt::format("program.command: {}: no such file in {}", word, wish.folder)};
  }
  return Unit{};
}

/// The files whose path, or whose folder, is a word of the line.
bool names(const std::string& line, const std::string& file) {
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const std::string path = fs::path(word).lexically_normal().string();
    if (word == "." || path == file || file.starts_with(path.ends_with('/') ? path : path + "/")) return true;
  }
  return false;
}

Result<std::string> key_of(const std::vector<std::string>& setup, const std::vector<std::string>& files,
                           const std::string& folder) {
  if (setup.empty()) return std::string();
  std::string all = fmt::format("{}\n", fmt::join(setup, "\n"));
  for (const std::string& file : files) {
    if (std::ranges::none_of(setup, [&](const std::string& line) { return names(line, file); })) continue;
    TW_TRY(const auto text, read_text_file(folder + "/" + file, kMostProgramBytes));
    all += fmt::format("{} {}\n", file, to_string(digest_of(text)));
  }
  return to_string(digest_of(all)).substr(0, 16);
}

}  // namespace

Result<UserProgram> user_program(const ProgramWish& wish, bool in_image) {
  Search search(wish);
  for (const std::string& file : wish.files) TW_TRY(search.add(file));
  UserProgram program{.command = wish.command,
                      .files = {search.files().begin(), search.files().end()},
                      .folders = search.empty_folders(),
                      .bytes = search.bytes(),
                      .setup = wish.setup,
                      .env = wish.env};
  if (!in_image) TW_TRY(check_script(wish, program.files));
  TW_TRY(auto key, key_of(program.setup, program.files, wish.folder));
  program.setup_key = std::move(key);
  return program;
}

Status stage(const UserProgram& program, const std::string& from, const std::string& run_folder) {
  std::error_code error;
  const fs::path to = fs::path(run_folder) / "program";
  fs::create_directories(to, error);
  const std::string list = run_folder + "/" + kStagedList;
  const auto staged = read_text_file(list);
  std::istringstream before(staged ? staged.value() : "");
  for (std::string file; std::getline(before, file);)
    if (std::ranges::find(program.files, file) == program.files.end()) fs::remove(to / file, error);
  std::string text;
  for (const std::string& file : program.files) {
    text += file + "\n";
    const fs::path copy = to / file, part = copy.string() + ".tw-new";
    fs::create_directories(copy.parent_path(), error);
    fs::copy_file(fs::path(from) / file, part, fs::copy_options::overwrite_existing, error);
    if (!error) fs::rename(part, copy, error);
    if (error)
      return Error{
          fmt::format("{}/{}: cannot be copied to {}: {}", from, file, to.string(), cause_text(error))};
  }
  return write_with_folder(list, text, 0600);
}

std::string python_package_of(const std::string& tw) {
  const fs::path folder = fs::path(tw).parent_path(), prefix = folder.parent_path();
  std::error_code error;
  std::vector<fs::path> places = {folder / "python", prefix / "lib/python3/dist-packages"};
  // pip puts tw into bin/, and the package into a folder of the interpreter.
  for (const char* lib : {"lib", "lib64"})
    for (const auto& entry : fs::directory_iterator(prefix / lib, error))
      if (entry.path().filename().string().starts_with("python3"))
        places.insert(places.end(), {entry.path() / "site-packages", entry.path() / "dist-packages"});
  for (const fs::path& place : places)
    if (const fs::path package = place / "tradewind";
        fs::exists(package / "libtradewind.so", error) && fs::exists(package / "__init__.py", error))
      return package.lexically_normal().string();
  return "";
}

std::vector<std::string> files_of_package(const std::string& package) {
  std::vector<std::string> files;
  std::error_code error;
  for (auto entry = fs::recursive_directory_iterator(package, error);
       entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (is_litter(entry->path())) entry.disable_recursion_pending();
    const std::string file = entry->path().lexically_relative(package).string();
    if (entry->is_regular_file(error) && file != "libtradewind.so" && file != "tw") files.push_back(file);
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace tw::launch
