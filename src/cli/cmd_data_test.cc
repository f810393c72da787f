// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <thread>

#include "base/check.h"
#include "cli/arguments/data_arguments.h"
#include "cli/commands.h"
#include "data/shards/shard_index.h"
#include "host/loop.h"
#include "host/web/server.h"

namespace tw::cli {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

/// An S3 server that answers every request with one list, and the environment that leads there.
class BucketOnTheWeb {
 public:
  explicit BucketOnTheWeb(std::string list) {
    auto opened = host::WebServer::open(
        loop_, {.address = "127.0.0.1:0"},
        [list = std::move(list)](const host::WebRequest&) { return host::WebAnswer{.body = list}; });
    TW_CHECK(opened);
    server_ = std::move(opened).value();
    thread_ = std::thread([this] { loop_.run(); });
    setenv("AWS_ENDPOINT_URL", server_->url().c_str(), 1);
    setenv("AWS_ACCESS_KEY_ID", "key", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  }

  BucketOnTheWeb(const BucketOnTheWeb&) = delete;
  BucketOnTheWeb& operator=(const BucketOnTheWeb&) = delete;

  ~BucketOnTheWeb() {
    for (const char* name : {"AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"})
      unsetenv(name);
    loop_.post([this] { loop_.stop(); });
    thread_.join();
  }

 private:
  host::Loop loop_;
  std::unique_ptr<host::WebServer> server_;
  std::thread thread_;
};

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
  EXPECT_EQ(pack_lines("c,d.txt,7\na.txt, 8 \n"), "0 ") << "commas that nobody quoted; blanks";
  EXPECT_THAT(packed(), UnorderedElementsAre("7:c,d.txt", "8:a.txt"));
  EXPECT_EQ(pack_lines("Path,Label\na.txt,9\n"), "0 ");
  EXPECT_THAT(packed(), UnorderedElementsAre("9:a.txt"));
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
  EXPECT_THAT(pack_lines("\"a.txt\",0,1\n"),
              HasSubstr("line 1 (a header would begin with path): expected PATH or PATH,CLASS"));
}

TEST_F(DataCommands, leave_no_shards_of_an_earlier_pack_beside_new_ones) {
  EXPECT_EQ(pack(at("in"), {.shard_size = "1KiB"}), "0 ");
  EXPECT_EQ(packed().size(), 3U);
  EXPECT_TRUE(std::filesystem::exists(at("train-000002.tar")));
  EXPECT_EQ(pack(at("in")), "2 tw: " + at("train-000000.tar") +
                                " is there; give another name, or --force to have the shards of this name "
                                "replaced\n");
  EXPECT_EQ(pack(at("in"), {.force = true}), "0 ");
  EXPECT_FALSE(std::filesystem::exists(at("train-000002.tar")));
  EXPECT_EQ(packed().size(), 3U);
}

TEST_F(DataCommands, replace_nothing_but_an_index) {
  EXPECT_EQ(pack(at("in")), "0 ");
  const std::string shard = at("train-000000.tar");
  const auto bytes = std::filesystem::file_size(shard);
  EXPECT_EQ(told({.shards = {shard}, .out = shard}, "index"),
            "2 tw: -o " + shard +
                ": it is there and is no index, so it is not replaced; give another name, or "
                "remove it first\n");
  EXPECT_EQ(std::filesystem::file_size(shard), bytes);
  EXPECT_EQ(
      told({.shards = {shard}, .out = at("in")}, "index"),
      "2 tw: -o " + at("in") + ": it is a folder; name a file in it, such as " + at("in/train.twi") + "\n");
  EXPECT_FALSE(std::filesystem::exists(at("in.part")));
  for (int times = 0; times < 2; ++times)
    EXPECT_EQ(told({.shards = {shard}, .out = at("x.twi")}, "index"), "0 ") << "an index is replaced";
  EXPECT_THAT(told({.shards = {"s3://bkt/x.tar"}, .out = "s3://bkt/x.tar"}, "index"),
              HasSubstr("2 tw: -o s3://bkt/x.tar: it is one of the shards"));
  EXPECT_THAT(pack(at("in"), {.out = at("in/")}), HasSubstr("expected the begin of the names, such as "));
}

TEST_F(DataCommands, take_names_as_they_stand_where_such_a_file_is) {
  EXPECT_EQ(pack(at("in")), "0 ");
  std::filesystem::rename(at("train-000000.tar"), at("t{1}.tar"));
  EXPECT_EQ(told({.shards = {at("t{1}.tar")}, .out = at("x.twi")}, "index"), "0 ");
  EXPECT_EQ(told({.shards = {""}, .out = at("x.twi")}, "index"),
            "2 tw: SHARD \"\": expected a name, found an empty one\n");
  EXPECT_THAT(told({.shards = {at("t{1}.tar")}, .out = ""}, "index"),
              HasSubstr("2 tw: -o: expected the name"));
}

TEST_F(DataCommands, take_a_folder_of_this_machine_without_a_slash_at_its_end) {
  std::filesystem::create_directories(at("shards"));
  EXPECT_EQ(pack(at("in"), {.out = at("shards/train")}), "0 ");
  EXPECT_EQ(told({.shards = {at("shards")}, .out = at("x.twi")}, "index"), "0 ");
  const auto index = data::read_shard_index(at("x.twi"));
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ(index.value().size(), 3U);
  EXPECT_EQ(told({.shards = {at("in")}, .out = at("y.twi")}, "index"),
            "2 tw: " + at("in") + ": no tar files\n");
}

TEST_F(DataCommands, name_tars_of_a_folder_that_they_leave_out) {
  EXPECT_EQ(pack(at("in")), "0 ");
  for (const char* name : {"b.tar.gz", "c.TAR", "in/d.tar", "e.tgz"}) std::ofstream(at(name)) << "x";
  EXPECT_EQ(told({.shards = {at("")}, .out = at("x.twi")}, "index"),
            "0 warning: " + at("") +
                ": tars at 4 places are left out, the first of them b.tar.gz; only files named "
                "*.tar in the folder itself are taken\n");
}

TEST_F(DataCommands, name_subfolders_of_a_store_that_they_leave_out) {
  const BucketOnTheWeb bucket(
      "<ListBucketResult><Prefix>sub/</Prefix><CommonPrefixes><Prefix>sub/b/</Prefix></CommonPrefixes>"
      "<CommonPrefixes><Prefix>sub/a/</Prefix></CommonPrefixes><Key>sub/x.txt</Key></ListBucketResult>");
  EXPECT_EQ(
      told({.shards = {"s3://bkt/sub/"}, .out = at("x.twi")}, "index"),
      "2 warning: s3://bkt/sub/: 2 subfolders are left out, the first of them a/; only files named *.tar "
      "in the folder itself are taken\ntw: s3://bkt/sub/: no tar files\n");
}

TEST_F(DataCommands, number_the_folders_as_classes) {
  for (const char* name : {"cat", "dog", "empty", "elsewhere", ".checks"})
    std::filesystem::create_directories(at("p/") + name);
  std::filesystem::rename(at("p/elsewhere"), at("elsewhere"));
  std::filesystem::create_directory_symlink(at("elsewhere"), at("p/bird"));
  for (const char* name :
       {"a.txt", "cat/c.txt", "dog/d.txt", "bird/b.txt", "dog/noext", "dog/.hidden.txt", ".checks/a.txt"})
    std::ofstream(at("p/") + name) << name;
  testing::internal::CaptureStdout();
  EXPECT_EQ(pack(at("p"), {.classes = true}),
            "0 warning: " + at("p") +
                ": 1 file beside the folders of classes is left out, the first of them a.txt\n"
                "warning: " +
                at("p") +
                ": 3 files without an ending (such as .jpg), hidden or not plain are left out, "
                "the first of them .checks/a.txt\n"
                "warning: " +
                at("p") + ": 1 of 4 classes has no samples, the first of them empty\n");
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              testing::StartsWith("classes: 0 bird, 1 cat, 2 dog, 3 empty\n"));
  EXPECT_THAT(packed(), UnorderedElementsAre("0:bird/b.txt", "1:cat/c.txt", "2:dog/d.txt"));
  std::filesystem::create_directory_symlink(at("p"), at("p/dog/loop"));
  EXPECT_THAT(pack(at("p"), {.classes = true, .force = true}),
              HasSubstr("p/dog/loop: a link to a folder in which it lies"));
  EXPECT_THAT(pack(at("in"), {.classes = true, .force = true}), HasSubstr("in: no folders in it"));
}

TEST_F(DataCommands, pack_no_field_twice) {
  std::filesystem::create_directories(at("p/cat"));
  for (const char* name : {"p/cat/0.png", "p/cat/0.PNG", "p/cat/1.cls"}) std::ofstream(at(name)) << "1";
  EXPECT_EQ(pack(at("p")), "2 tw: the field png comes twice in a sample: by " + at("p/cat/0.PNG") +
                               " and by " + at("p/cat/0.png") + "; leave one out, or rename it\n");
  std::filesystem::remove(at("p/cat/0.PNG"));
  EXPECT_THAT(
      pack(at("p"), {.classes = true}),
      HasSubstr("the field cls comes twice in a sample: by its class (of --classes, or of the list) and by " +
                at("p/cat/1.cls")));
  EXPECT_FALSE(std::filesystem::exists(at("train-000000.tar")));
}

TEST_F(DataCommands, warn_of_samples_with_other_fields_than_most) {
  EXPECT_EQ(pack_lines("a.txt,3\nb.txt\n\"c,d.txt\",5\n"),
            "0 warning: " + at("in/list.csv") +
                ": 1 of 3 samples has other fields than most (cls, txt), the first of them " +
                at("in/b.txt") + " (txt)\n");
  std::filesystem::create_directories(at("p/cat"));
  for (const char* name : {"p/cat/0.png", "p/cat/1.png", "p/cat/1.cap", "p/cat/2.png", "p/cat/Thumbs.db"})
    std::ofstream(at(name)) << name;
  EXPECT_EQ(pack(at("p"), {.classes = true, .force = true}),
            "0 warning: " + at("p") +
                ": 2 of 4 samples have other fields than most (cls, png), the first of them " +
                at("p/cat/1.cap") + " (cap, cls, png)\n");
}

TEST_F(DataCommands, pack_no_shard_that_they_are_about_to_replace) {
  EXPECT_EQ(pack(at("in"), {.out = at("in/self")}), "0 ");
  EXPECT_THAT(pack(at("in"), {.out = at("in/self"), .force = true}),
              HasSubstr("tw: -o " + at("in/self") + ": " + at("in/self-000000.tar") +
                        ", a shard of this name, would be packed as a sample; choose another -o\n"));
  EXPECT_EQ(pack(at("in/"), {.out = at("in/../self"), .force = true}).substr(0, 1), "0") << "elsewhere";
}

TEST_F(DataCommands, pack_a_list_with_a_byte_order_mark_and_without_classes) {
  EXPECT_EQ(pack_lines("\xef\xbb\xbfpath,label\na.txt,3\n"), "0 ");
  EXPECT_THAT(packed(), UnorderedElementsAre("3:a.txt"));
  EXPECT_EQ(pack_lines("\xef\xbb\xbf"
                       "a.txt,4\n"),
            "0 ");
  EXPECT_THAT(packed(), UnorderedElementsAre("4:a.txt"));
  EXPECT_THAT(pack(at("in/list.csv"), {.classes = true}), HasSubstr("list.csv is no folder, so its folders"));
}

TEST_F(DataCommands, tell_wrong_input_from_a_store_that_fails) {
  std::ofstream(at("torn.tar")) << std::string(700, 'x');
  EXPECT_THAT(told({.shards = {at("torn.tar")}, .out = at("x.twi")}, "index"),
              HasSubstr("2 tw: " + at("torn.tar") + ": expected a tar file"));
  EXPECT_THAT(told({.shards = {at("none.tar")}, .out = at("x.twi")}, "index"),
              HasSubstr("2 tw: " + at("none.tar") + ": No such file"));
  EXPECT_THAT(told({.shards = {at("torn.tar"), at("torn.tar")}, .out = at("x.twi")}, "index"),
              HasSubstr("2 tw: " + at("torn.tar") + ": named twice"));
  EXPECT_EQ(pack(at("nothing")), "2 tw: " + at("nothing") + ": cannot be read: No such file or directory\n");
  std::filesystem::create_directories(at("empty"));
  EXPECT_EQ(pack(at("empty")), "2 tw: " + at("empty") + ": no samples\n");
  EXPECT_THAT(pack_lines("a.txt,cat\n"), HasSubstr("2 tw: "));
  const BucketOnTheWeb bucket("no ranges");
  EXPECT_THAT(told({.shards = {"s3://bkt/x.tar"}, .out = at("x.twi")}, "index"),
              HasSubstr("1 tw: s3://bkt/x.tar, bytes 0-0: the server serves no ranges"));
}

TEST_F(DataCommands, say_which_stores_they_read_and_write) {
  EXPECT_THAT(pack(at("in"), {.out = "gs://bucket/train"}),
              HasSubstr("2 tw: -o gs://bucket/train: expected a path or s3://"));
  for (const std::string out : {"s3://bucket", "s3://bucket/", "s3://bucket/folder/"}) {
    const std::string wrong = "2 tw: -o " + out + ": expected a path or s3://BUCKET/NAME\n";
    EXPECT_EQ(pack(at("in"), {.out = out}), wrong);
    EXPECT_EQ(told({.shards = {at("in/")}, .out = out}, "index"), wrong);
  }
  EXPECT_THAT(pack(at("in"), {.out = "s3://b/x"}),
              HasSubstr("2 tw: -o s3://b/x: expected s3://BUCKET/KEY with a"));
  EXPECT_THAT(told({.shards = {"gs://b/folder/"}, .out = at("x.twi")}, "index"),
              HasSubstr("2 tw: gs://b/folder/: folders of this machine and of s3 are listed, no others"));
  EXPECT_THAT(
      told({.shards = {at("*.tar")}, .out = at("x.twi")}, "index"),
      HasSubstr("* and ? are for the shell (without quotes); or name the folder for all tar files there"));
  EXPECT_THAT(told({.shards = {at("a.tar")}, .out = at("none/x.twi")}, "index"),
              HasSubstr("2 tw: -o " + at("none/x.twi") + ": there is no folder " + at("none")));
  EXPECT_THAT(told({.index = "s3://b/x.twi"}, "ls"),
              HasSubstr("2 tw: s3://b/x.twi: an index is read from this machine"));
  EXPECT_THAT(told({.index = at("none.twi")}, "verify"), HasSubstr("2 tw: " + at("none.twi")));
  EXPECT_THAT(told({.index = at("in/a.txt")}, "ls"), HasSubstr("2 tw: " + at("in/a.txt")));
  EXPECT_THAT(told({.shards = {at("none/")}, .out = at("x.twi")}, "index"), HasSubstr("2 tw: "));
}

}  // namespace
}  // namespace tw::cli
