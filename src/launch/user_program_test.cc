// SPDX-License-Identifier: Apache-2.0
#include "launch/user_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/text/text_file.h"
#include "host/system/temporary_folder.h"

namespace tw::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

/// A run file's folder, and the folder of the run.
class Programs : public testing::Test {
 protected:
  void SetUp() override {
    write("train.py", "import torch");
    write("src/model.py", "layers");
    write("src/__pycache__/model.pyc", "litter");
    write("requirements.txt", "numpy");
    std::filesystem::create_directories(state());
  }

  std::string from() const { return folder_.path() + "/job"; }

  std::string state() const { return folder_.path() + "/state"; }

  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = std::filesystem::path(from()) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  UserProgram found(const std::vector<std::string>& files, const std::vector<std::string>& setup = {}) {
    auto program = user_program({.folder = from(),
                                 .command = {"python3", "train.py"},
                                 .files = files,
                                 .setup = setup,
                                 .warn = [&](const std::string& line) { warnings_.push_back(line); }},
                                false);
    EXPECT_TRUE(program.ok()) << program.error().message;
    return program.value();
  }

  std::string wrong(const std::vector<std::string>& files, const std::string& script = "train.py") const {
    const auto program =
        user_program({.folder = from(), .command = {"python3", script}, .files = files}, false);
    return program ? "no error" : program.error().message;
  }

  host::TemporaryFolder folder_;
  std::vector<std::string> warnings_;
};

TEST_F(Programs, a_folder_stands_for_its_files_without_what_tools_leave_there) {
  EXPECT_THAT(found({"train.py", "src/"}).files, ElementsAre("src/model.py", "train.py"));
  EXPECT_EQ(found({"."}).files.size(), 3U);
  EXPECT_EQ(found({"train.py"}).bytes, 12U);
}

TEST_F(Programs, empty_folders_are_folders_of_the_program) {
  for (const char* folder : {"out", "src/logs/a", "src/logs/.git/refs", "src/cache/__pycache__"})
    std::filesystem::create_directories(from() + "/" + folder);
  EXPECT_THAT(found({"train.py", "src", "out/"}).folders, ElementsAre("out", "src/cache", "src/logs/a"));
  EXPECT_THAT(found({"."}).folders, ElementsAre("out", "src/cache", "src/logs/a"));
  EXPECT_EQ(found({"."}).files.size(), 3U);
  EXPECT_THAT(warnings_, ElementsAre());
}

TEST_F(Programs, links_that_cannot_be_copied_are_named) {
  std::filesystem::create_symlink("model.py", from() + "/src/link.py");
  EXPECT_THAT(found({"train.py", "src"}).files, ElementsAre("src/link.py", "src/model.py", "train.py"));
  EXPECT_THAT(warnings_, ElementsAre());
  std::filesystem::create_symlink("nowhere", from() + "/src/dangling");
  std::filesystem::create_symlink("../bin", from() + "/src/bin");
  write("bin/tool", "");
  EXPECT_THAT(found({"train.py", "src"}).folders, ElementsAre());
  EXPECT_THAT(warnings_,
              UnorderedElementsAre(
                  "program.files: src/dangling: a link to nowhere, which is not there; machines will lack it",
                  "program.files: src/bin: a link to the folder ../bin; machines will lack it"));
}

TEST_F(Programs, a_file_that_machines_would_lack_is_named) {
  EXPECT_THAT(wrong({"tran.py"}), HasSubstr("program.files: tran.py: no such file or folder in "));
  EXPECT_EQ(wrong({"src"}),
            "program.files: train.py of the command is not among them; machines would lack it");
  EXPECT_THAT(wrong({"src"}, "main.py"), HasSubstr("program.command: main.py: no such file in "));
  for (const char* outside : {"../job/train.py", "/etc/passwd", "src/../../x"})
    EXPECT_THAT(wrong({outside}), HasSubstr("expected a path below the folder of the run file")) << outside;
  EXPECT_TRUE(user_program({.folder = from(), .command = {"python3", "main.py"}}, true).ok())
      << "in the image";
}

TEST_F(Programs, setup_runs_again_for_other_lines_and_for_other_files_that_they_name) {
  const std::vector<std::string> setup = {"pip install -r requirements.txt"};
  const std::string before = found({"."}, setup).setup_key;
  write("train.py", "import torch, os");
  EXPECT_EQ(found({"."}, setup).setup_key, before);
  EXPECT_NE(found({"."}, {"pip install .", "make"}).setup_key, before);
  write("requirements.txt", "numpy<2");
  EXPECT_NE(found({"."}, setup).setup_key, before);
  EXPECT_EQ(found({"."}).setup_key, "");
}

TEST_F(Programs, the_staged_files_are_those_of_the_list_and_no_others) {
  ASSERT_TRUE(stage(found({"train.py", "src"}), from(), state()).ok());
  write("train.py", "import tradewind");
  ASSERT_TRUE(stage(found({"train.py"}), from(), state()).ok());
  EXPECT_EQ(read_text_file(state() + "/program/train.py").value(), "import tradewind");
  EXPECT_FALSE(std::filesystem::exists(state() + "/program/src/model.py"));
  EXPECT_EQ(read_text_file(state() + "/program.list").value(), "train.py\n");
}

TEST_F(Programs, the_python_package_is_beside_the_program_or_where_debian_or_pip_has_it) {
  write("bin/tw", "");
  EXPECT_EQ(python_package_of(from() + "/bin/tw"), "");
  for (const char* place : {"lib/python3.9/site-packages", "lib64/python3.9/site-packages",
                            "lib/python3.11/dist-packages", "lib/python3/dist-packages"}) {
    for (const char* name : {"__init__.py", "libtradewind.so"})
      write(std::string(place) + "/tradewind/" + name, "");
    EXPECT_EQ(python_package_of(from() + "/bin/tw"), from() + "/" + place + "/tradewind");
    std::filesystem::remove_all(from() + "/lib");
    std::filesystem::remove_all(from() + "/lib64");
  }
}

TEST_F(Programs, of_the_python_package_all_is_copied_but_what_was_compiled) {
  for (const char* name : {"__init__.py", "py.typed", "demo/__init__.py", "demo/digits.gz", "libtradewind.so",
                           "tw", "demo/__pycache__/__init__.pyc"})
    write(std::string("python/tradewind/") + name, "");
  EXPECT_THAT(files_of_package(from() + "/python/tradewind"),
              ElementsAre("__init__.py", "demo/__init__.py", "demo/digits.gz", "py.typed"));
}

}  // namespace
}  // namespace tw::launch
