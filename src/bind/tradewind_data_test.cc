// SPDX-License-Identifier: Apache-2.0
#include "bind/tradewind_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "bind/shard_data.h"
#include "bind/tradewind.h"
#include "data/shards/index_shards.h"
#include "data/shards/test_tar.h"
#include "host/store/stores.h"

namespace tw::bind {
namespace {

using ::testing::HasSubstr;

/// Two samples in a tar of this machine.
class ShardsOfAProgram : public testing::Test {
 protected:
  ShardsOfAProgram() {
    std::filesystem::create_directories(folder_);
    write("a.tar", data::test_tar({{"x/0.json", "[[1, 2.5]]"}, {"x/0.cap", "a cat"}, {"x/1.json", "{"}}));
    host::Stores stores;
    auto index = data::index_shards({folder_ + "/a.tar"}, stores, {});
    EXPECT_TRUE(index) << (index ? "" : index.error().message);
    write("a.twi", index.value().encode());
  }

  ~ShardsOfAProgram() override {
    tw_data_close(data_);
    std::filesystem::remove_all(folder_);
  }

  ShardsOfAProgram(const ShardsOfAProgram&) = delete;
  ShardsOfAProgram& operator=(const ShardsOfAProgram&) = delete;

  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes;
  }

  int open(std::vector<std::pair<std::string, std::string>> settings) {
    settings.insert(settings.begin(), {"index", folder_ + "/a.twi"});
    std::vector<tw_setting> given;
    for (const auto& [key, value] : settings) given.push_back({key.c_str(), value.c_str()});
    tw_data_close(std::exchange(data_, nullptr));
    return tw_data_open(given.data(), given.size(), &data_);
  }

  std::vector<tw_value> read(const std::vector<std::uint64_t>& samples, std::size_t fields) {
    std::vector<tw_value> values(samples.size() * (1 + fields));
    int status = TW_TIMEOUT;
    while (status == TW_TIMEOUT)
      status = tw_data_read(data_, samples.data(), samples.size(), 100, values.data());
    EXPECT_EQ(TW_OK, status) << tw_last_error();
    return values;
  }

  static std::string text(const tw_value& value) {
    return {static_cast<const char*>(value.data), value.size};
  }

  static std::string taken(char* text) {
    const std::string copy = text != nullptr ? text : "";
    tw_free(text);
    return copy;
  }

  const std::string folder_ = testing::TempDir() + "tradewind_data_" + std::to_string(::getpid());
  tw_data* data_ = nullptr;
};

TEST_F(ShardsOfAProgram, come_as_bytes_with_their_keys) {
  ASSERT_EQ(TW_OK, open({{"threads", "2"}, {"memory", "1MiB"}})) << tw_last_error();
  EXPECT_THAT(taken(tw_data_facts(data_)), HasSubstr(R"({"samples":2,"fields":["json","cap"],"shards":1)"));
  EXPECT_THAT(taken(tw_data_sample(data_, 1)), HasSubstr(R"("key":"x/1")"));
  const std::vector<std::uint64_t> both = {1, 0};
  EXPECT_EQ(TW_OK, tw_data_expect(data_, both.data(), both.size()));
  const std::vector<tw_value> values = read(both, 2);
  EXPECT_EQ("x/1", text(values[0]));
  EXPECT_EQ("{", text(values[1]));
  EXPECT_EQ(std::uint32_t{TW_ABSENT}, values[2].content);
  EXPECT_EQ("a cat", text(values[5]));
}

TEST_F(ShardsOfAProgram, come_decoded_with_their_shapes) {
  ASSERT_EQ(TW_OK, open({{"field", "json"}, {"decode", "true"}})) << tw_last_error();
  const std::vector<tw_value> values = read({0}, 1);
  const tw_value& array = values[1];
  ASSERT_EQ(std::uint32_t{TW_ARRAY_FLOAT32}, array.content);
  EXPECT_EQ((std::vector<std::uint64_t>{1, 2}),
            std::vector<std::uint64_t>(array.shape, array.shape + array.dimensions));
  float second = 0;
  std::memcpy(&second, static_cast<const char*>(array.data) + sizeof(float), sizeof(float));
  EXPECT_EQ(2.5F, second);
  const std::uint64_t broken = 1;
  std::vector<tw_value> none(2);
  int status = TW_TIMEOUT;
  while (status == TW_TIMEOUT) status = tw_data_read(data_, &broken, 1, 100, none.data());
  EXPECT_EQ(TW_FAILED, status);
  EXPECT_THAT(tw_last_error(), HasSubstr("a.tar: x/1: json, bytes 2560-2560: expected JSON"));
}

TEST_F(ShardsOfAProgram, say_what_is_wrong_with_settings_and_numbers) {
  EXPECT_EQ(TW_MISUSE, open({{"thread", "2"}}));
  EXPECT_STREQ("there is no setting thread; did you mean \"threads\"?", tw_last_error());
  EXPECT_EQ(TW_MISUSE, open({{"memory", "lots"}}));
  EXPECT_THAT(tw_last_error(), HasSubstr("memory=lots: expected a size such as 256MiB"));
  EXPECT_EQ(TW_MISUSE, open({{"memory", "1KiB"}}));
  EXPECT_THAT(tw_last_error(), HasSubstr("memory=1KiB: expected a size such as 256MiB, from 1 MiB to 1 TiB"));
  EXPECT_EQ(TW_MISUSE, open({{"cache_limit", "1GiB"}}));
  EXPECT_THAT(tw_last_error(), HasSubstr("cache_limit=1GiB: expected with cache=FOLDER, which it limits"));
  EXPECT_EQ(TW_MISUSE, open({{"channels", "2"}}));
  EXPECT_EQ(TW_MISUSE, open({{"image", "4097"}}));
  EXPECT_THAT(tw_last_error(), HasSubstr("image=4097"));
  EXPECT_EQ(TW_MISUSE, open({{"field", "jsn"}}));
  EXPECT_THAT(tw_last_error(), HasSubstr("did you mean \"json\"?"));
  ASSERT_EQ(TW_OK, open({}));
  const std::uint64_t wrong = 2;
  std::vector<tw_value> values(3);
  EXPECT_EQ(TW_MISUSE, tw_data_read(data_, &wrong, 1, 0, values.data()));
  EXPECT_STREQ("sample 2: expected 0 to 1", tw_last_error());
  EXPECT_EQ(nullptr, tw_data_sample(data_, 2));
}

TEST_F(ShardsOfAProgram, are_opened_anew_in_a_forked_child) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "TSan allows no threads in the child of a process with threads";
#endif
  ASSERT_EQ(TW_OK, open({}));
  const pid_t child = ::fork();
  if (child == 0) {
    const bool refused = tw_data_facts(data_) == nullptr &&
                         std::string(tw_last_error()).find("open it for itself") != std::string::npos;
    ::_exit(refused && open({}) == TW_OK && text(read({0}, 2)[0]) == "x/0" ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ("x/1", text(read({1}, 2)[0])) << "the parent goes on";
}

TEST(StoreTroubles, tell_the_first_of_each_store) {
  StoreTroubles troubles;
  EXPECT_EQ(troubles.rest(), "");
  troubles.take("s3://data/a.tar, bytes 0-9: 503; asked again (3 of 6)");
  troubles.take("s3://data/b.tar, bytes 0-9: 503; asked again (3 of 6)");
  troubles.take("http://10.0.0.5/a.tar, bytes 0-9: no answer; asked again (1 of 6)");
  EXPECT_EQ(troubles.rest(),
            "s3://data/a.tar, bytes 0-9: 503; asked again (3 of 6)\n"
            "http://10.0.0.5/a.tar, bytes 0-9: no answer; asked again (1 of 6)\n");
  troubles.take("s3://data/a.tar, bytes 0-9: 503; asked again (4 of 6)");
  EXPECT_EQ(troubles.rest(), "");
}

}  // namespace
}  // namespace tw::bind
