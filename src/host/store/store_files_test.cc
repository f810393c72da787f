// SPDX-License-Identifier: Apache-2.0
#include "host/store/store_files.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <asio.hpp>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <list>
#include <map>
#include <thread>

namespace tw::host {
namespace {

using testing::HasSubstr;

TEST(StoreFiles, name_the_files_of_credentials_that_cannot_be_read) {
  const std::string home = testing::TempDir() + "tradewind_home_" + std::to_string(::getpid());
  std::map<std::string, std::string> variables{{"HOME", home}};
  const auto read = [&] { return read_aws_files([&](const std::string& name) { return variables[name]; }); };
  EXPECT_EQ(read(), AwsFiles{}) << "nobody must have them";
  std::filesystem::create_directories(home + "/.aws/credentials");
  std::ofstream(home + "/.aws/config") << "[default]\n";
  EXPECT_EQ(read(),
            (AwsFiles{"", "[default]\n",
                      home + "/.aws/credentials: cannot be read: it is a folder; expected a regular file"}));
  variables["AWS_SHARED_CREDENTIALS_FILE"] = home + "/.aws/config";
  EXPECT_EQ(read(), (AwsFiles{"[default]\n", "[default]\n", ""}));
  variables["AWS_CONFIG_FILE"] = "/none";
  EXPECT_EQ(read().trouble, "AWS_CONFIG_FILE=/none: cannot be read: No such file or directory");
  std::filesystem::remove_all(home);
}

/// Leads to the store at this address.
class EnvironmentOfStore {
 public:
  explicit EnvironmentOfStore(const std::string& url) {
    setenv("AWS_ENDPOINT_URL", url.c_str(), 1);
    setenv("AWS_ACCESS_KEY_ID", "key", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  }

  EnvironmentOfStore(const EnvironmentOfStore&) = delete;
  EnvironmentOfStore& operator=(const EnvironmentOfStore&) = delete;

  ~EnvironmentOfStore() {
    for (const char* name : {"AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"})
      unsetenv(name);
  }
};

TEST(StoreFiles, ask_no_store_after_their_end) {
  const EnvironmentOfStore environment("http://127.0.0.1:1");
  StoreFiles files({.attempts = 1});
  EXPECT_THAT(files.list("s3://data/run").error().message, HasSubstr("127.0.0.1:1): "));
  files.end_at(Instant{});
  files.end_at(kNever);
  EXPECT_EQ(files.list("s3://data/run").error().message,
            "s3://data/run/: 127.0.0.1:1 did not answer in time");
  const std::string own = testing::TempDir() + "tradewind_own_" + std::to_string(::getpid());
  EXPECT_TRUE(files.make_folder(own)) << "those of this machine are none of a store";
  std::filesystem::remove_all(own);
}

/// A store on a thread of its own that takes an upload, and answers no part of it.
class HangingStore {
 public:
  explicit HangingStore(std::function<void()> at_part) : at_part_(std::move(at_part)) {
    thread_ = std::thread([this] {
      while (answer()) continue;
    });
  }

  HangingStore(const HangingStore&) = delete;
  HangingStore& operator=(const HangingStore&) = delete;

  ~HangingStore() {
    asio::ip::tcp::socket last(own_);
    last.connect(acceptor_.local_endpoint());
    asio::write(last, asio::buffer(std::string("END /\r\n\r\n")));
    thread_.join();
  }

  bool was_rid_of_upload() const { return rid_of_upload_; }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()); }

 private:
  /// False: it ends.
  bool answer() {
    asio::ip::tcp::socket& client = clients_.emplace_back(context_);
    acceptor_.accept(client);
    std::string request;
    asio::read_until(client, asio::dynamic_buffer(request), "\r\n\r\n");
    if (request.starts_with("END ")) return false;
    if (request.starts_with("PUT ")) return at_part_(), true;
    if (request.starts_with("DELETE ")) rid_of_upload_ = true;
    const std::string body = request.starts_with("POST ") ? "<UploadId>u1</UploadId>" : "";
    asio::write(client, asio::buffer(fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}",
                                                 body.size(), body)));
    return true;
  }

  std::function<void()> at_part_;
  std::atomic<bool> rid_of_upload_ = false;
  asio::io_context context_, own_;
  asio::ip::tcp::acceptor acceptor_{context_, {asio::ip::address_v4::loopback(), 0}};
  std::list<asio::ip::tcp::socket> clients_;
  std::thread thread_;
};

TEST(StoreFiles, drop_an_upload_that_their_end_breaks_off) {
  StoreFiles files({.attempts = 1});
  const HangingStore store([&] { files.end_at(Instant{}); });
  const EnvironmentOfStore environment(store.url());
  const std::vector<std::byte> large(S3Files::kPartBytes + 1);
  const std::vector<std::span<const std::byte>> parts{large};
  const Status written = files.write("s3://data/x", parts);
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("broken off"));
  EXPECT_TRUE(store.was_rid_of_upload());
}

}  // namespace
}  // namespace tw::host
