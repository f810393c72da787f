// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

#include "cli/arguments/data_arguments.h"
#include "cli/commands.h"
#include "data/shards/shard_index.h"

namespace tw::cli {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

/// A folder of its own, with three files of samples.
class DataCommands : public testing::Test {
 protected:
  DataCommands() {
    std::filesystem::create_directories(at("in"));
    for (const char* name : {"a.txt", "b.txt", "c,d.txt"}) std::ofstream(at("in/") + name) << name;
  }

  ~DataCommands() override { std::filesystem::remove_all(folder_); }

  std::string at(const std::string& name) const { return folder_ + "/" + name; }

  /// The exit code, then what was complained of.
  static std::string told(const DataArguments& arguments, const std::string& command) {
    testing::internal::CaptureStderr();
    const int code = run_data(arguments, command);
    return std::to_string(code) + " " + testing::internal::GetCapturedStderr();
  }

  std::string pack(const std::string& source, DataArguments arguments = {}) const {
    arguments.source = source;
    if (arguments.out.empty()) arguments.out = at("train");
    return told(arguments, "pack");
  }

  std::string pack_lines(const std::string& lines) const {
    std::ofstream(at("in/list.csv")) << lines;
    return pack(at("in/list.csv"), {.force = true});
  }

  /// "CLASS:TEXT" of each sample that was packed.
  std::vector<std::string> packed() const {
    EXPECT_EQ(told({.shards = {at("")}, .out = at("x.twi")}, "index"), "0 ");
    const auto index = data::read_shard_index(at("x.twi"));
    std::vector<std::string> all;
    for (std::uint64_t i = 0; index && i < index.value().size(); ++i) {
      const auto sample = index.value().sample(i);
      std::map<std::string, std::string> fields;
      for (const data::FieldPlace& place : sample.fields) {
        std::ifstream shard(index.value().shards()[sample.shard].object, std::ios::binary);
        std::string content(place.length, '\0');
        shard.seekg(static_cast<std::streamoff>(place.offset)).read(content.data(), std::ssize(content));
        fields[index.value().field_names()[place.name]] = content;
      }
      all.push_back(fields["cls"] + ":" + fields["txt"]);
    }
    return all;
  }

  std::string folder_ = testing::TempDir() + "tradewind_data_" + std::to_string(::getpid());
};

TEST_F(DataCommands, pack_a_list_as_spreadsheets_write_it) {
  EXPECT_EQ(pack_lines("path,label\r\na.txt,3\r\n\"b.txt\",4\r\n\"c,d.txt\",5\r\n"), "0 ");
  EXPECT_THAT(packed(), UnorderedElementsAre("3:a.txt", "4:b.txt", "5:c,d.txt"));
  EXPECT_EQ(pack_lines("c,d.txt,7\na.txt\n"), "0 ") << "commas that nobody quoted; no class";
  EXPECT_THAT(packed(), UnorderedElementsAre("7:c,d.txt", ":a.txt"));
}

TEST_F(DataCommands, pack_what_comes_on_stdin) {
  std::istringstream lines(at("in/a.txt") + ",1\n" + at("in/b.txt") + ",2\n");
  std::streambuf* const before = std::cin.rdbuf(lines.rdbuf());
  EXPECT_EQ(pack("-"), "0 ");
  std::cin.rdbuf(before);
  EXPECT_THAT(packed(), UnorderedElementsAre("1:a.txt", "2:b.txt"));
}

TEST_F(DataCommands, name_the_line_of_a_list_that_is_wrong) {
  EXPECT_THAT(pack_lines("a.txt,0\nb.txt,cat\n"),
              HasSubstr("list.csv: line 2: expected PATH,CLASS with a whole "
                        "number, found b.txt,cat; where classes have names"));
  EXPECT_THAT(pack_lines("a.txt,0\nnone.txt,0\n"), HasSubstr("line 2: no such file: " + at("in/none.txt")));
  EXPECT_THAT(pack_lines("\"a.txt\",0,1\n"), HasSubstr("line 1: expected PATH or PATH,CLASS"));
}

TEST_F(DataCommands, leave_no_shards_of_an_earlier_pack_beside_new_ones) {
  EXPECT_EQ(pack(at("in"), {.shard_size = "1KiB"}), "0 ");
  EXPECT_EQ(packed().size(), 3U);
  EXPECT_TRUE(std::filesystem::exists(at("train-000002.tar")));
  EXPECT_EQ(pack(at("in")), "1 tw: " + at("train-000000.tar") +
                                " is there; give another name, or --force to have the shards of this name "
                                "replaced\n");
  EXPECT_EQ(pack(at("in"), {.force = true}), "0 ");
  EXPECT_FALSE(std::filesystem::exists(at("train-000002.tar")));
  EXPECT_EQ(packed().size(), 3U);
}

TEST_F(DataCommands, say_which_stores_they_read_and_write) {
  EXPECT_THAT(pack(at("in"), {.out = "gs://bucket/train"}),
              HasSubstr("2 tw: -o gs://bucket/train: expected a path or s3://"));
  EXPECT_THAT(told({.shards = {"gs://b/folder/"}, .out = at("x.twi")}, "index"),
              HasSubstr("2 tw: gs://b/folder/: folders of this machine and of s3 are listed, no others"));
  EXPECT_THAT(told({.shards = {at("*.tar")}, .out = at("x.twi")}, "index"),
              HasSubstr("* and ? are for the shell"));
  EXPECT_THAT(told({.shards = {at("a.tar")}, .out = at("none/x.twi")}, "index"),
              HasSubstr("2 tw: -o " + at("none/x.twi") + ": there is no folder " + at("none")));
  EXPECT_THAT(told({.index = "s3://b/x.twi"}, "ls"),
              HasSubstr("2 tw: s3://b/x.twi: an index is read from this machine"));
  EXPECT_THAT(told({.index = at("none.twi")}, "verify"), HasSubstr("1 tw: "));
}

}  // namespace
}  // namespace tw::cli
