// SPDX-License-Identifier: Apache-2.0
#include "peer/links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/text/write_file.h"
#include "host/files_disk.h"
#include "host/identity/authority.h"
#include "host/store/store_files.h"
#include "host/system/calendar.h"
#include "peer/search/meeting_place.h"
#include "sync/checkpoint.h"
#include "sync/test_state.h"
#include "train/run/run_facts.h"

namespace tw::peer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class ReadLinks : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "tw-links-" + std::to_string(getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    ASSERT_TRUE(host::write_secret_file(token_file(folder_), token() + "\n"));
  }

  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// The text of a token that names these peers.
  static std::string token(const std::vector<std::string>& addresses = {}, std::int64_t lasts_s = 3600) {
    const std::int64_t now = host::now_unix_s();
    return to_text(host::Authority::create("words").issue(
        {.from_unix_s = now - 7200, .expires_unix_s = now + lasts_s, .addresses = addresses}));
  }

  Options read(const LinkOptions& given, Spelling spelling = Spelling::command_line) {
    auto options = read_links(given, spelling);
    EXPECT_TRUE(options) << options.error().message;
    return options ? std::move(options).value() : Options{};
  }

  static std::string complaint(const LinkOptions& given, Spelling spelling) {
    const auto options = read_links(given, spelling);
    return options ? "nothing is wrong" : options.error().message;
  }

  static void expect(const LinkOptions& given, const std::string& command_line, const std::string& python) {
    EXPECT_EQ(complaint(given, Spelling::command_line), command_line);
    EXPECT_EQ(complaint(given, Spelling::python), python);
  }

  std::string folder_;
};

TEST_F(ReadLinks, of_a_peer_alone_make_a_token_of_its_own_and_stay_on_this_machine) {
  const Options alone = read({});
  EXPECT_NE(alone.tls, nullptr);
  EXPECT_EQ(alone.session.listen, "127.0.0.1:0");
  EXPECT_THAT(alone.session.join, IsEmpty());
  EXPECT_EQ(alone.admission, "");
  EXPECT_EQ(alone.session.past, train::Past::over) << "nobody else can have its token";
  EXPECT_GE(alone.session.self.value, 1U);
  EXPECT_NE(alone.session.self, read({}).session.self);
  EXPECT_NE(alone.session.incarnation, read({}).session.incarnation);
}

TEST_F(ReadLinks, take_the_plain_values_as_they_are) {
  const Options peer = read({.out = "logs",
                             .log_limit = "8MiB",
                             .id = "7",
                             .wait_for = "3",
                             .site = "aws:us-east-1:a",
                             .token = token()});
  EXPECT_EQ(peer.session.self, PeerId{7});
  EXPECT_EQ(peer.session.wait_for, 3U);
  EXPECT_EQ(peer.session.site, "aws:us-east-1:a");
  EXPECT_EQ(peer.out, (std::filesystem::current_path() / "logs").string());
  EXPECT_EQ(peer.log_limits.part_bytes * peer.log_limits.parts, 8ULL << 20);
  EXPECT_EQ(peer.session.past, train::Past::unknown);
}

TEST_F(ReadLinks, have_the_role_of_the_token_unless_the_user_says_another_one) {
  const auto token_of = [](wire::Role role) {
    const std::int64_t now = host::now_unix_s();
    return to_text(host::Authority::create("words").issue(
        {.role = role, .from_unix_s = now - 7200, .expires_unix_s = now + 3600}));
  };
  EXPECT_FALSE(read({}).session.anchor);
  EXPECT_TRUE(read({.role = "anchor"}).session.anchor);
  EXPECT_TRUE(read({.role = "anchor", .insecure = true}).session.anchor);
  EXPECT_TRUE(read({.token = token_of(wire::Role::anchor)}).session.anchor);
  EXPECT_FALSE(read({.role = "peer", .token = token_of(wire::Role::anchor)}).session.anchor);
  EXPECT_TRUE(read({.role = "anchor", .token = token_of(wire::Role::peer)}).session.anchor);
  expect({.role = "chief"}, "--role chief: expected peer or anchor", "role=chief: expected peer or anchor");
}

TEST_F(ReadLinks, listen_where_those_whom_it_joins_can_reach_it) {
  EXPECT_EQ(read({.join = {"127.0.0.1:7000", "localhost:7"}, .token = token()}).session.listen,
            "127.0.0.1:0");
  EXPECT_EQ(read({.join = {"127.0.0.1:7000", "10.0.0.5:7"}, .token = token()}).session.listen, "0.0.0.0:0");
  EXPECT_EQ(read({.token = token({"10.0.0.5:7"})}).session.listen, "0.0.0.0:0");
  EXPECT_EQ(read({.join = {"10.0.0.5:7"}, .listen = "none", .token = token()}).session.listen, "");
}

// Every peer had an address to join, and all waited for another one to begin.
TEST_F(ReadLinks, of_the_peer_at_the_first_address_of_the_token_begin_the_run) {
  const std::string two = token({"127.0.0.1:2", "127.0.0.1:3"});
  const auto session = [&](LinkOptions given) {
    given.token = two;
    return read(given).session;
  };
  EXPECT_TRUE(session({.listen = "127.0.0.1:2"}).founds());
  EXPECT_EQ(session({.listen = "127.0.0.1:2"}).join, std::vector<std::string>{"127.0.0.1:3"});
  EXPECT_FALSE(session({.listen = "127.0.0.1:3"}).founds());
  EXPECT_FALSE(session({.listen = "127.0.0.1:4"}).founds());
  EXPECT_FALSE(session({.join = {"127.0.0.1:4"}, .listen = "127.0.0.1:2"}).founds()) << "the user says whom";
}

TEST_F(ReadLinks, join_those_of_the_token_but_not_themselves) {
  const Options peer = read(
      {.join = {"127.0.0.1:1"}, .listen = "127.0.0.1:2", .token = token({"127.0.0.1:2", "127.0.0.1:3"})});
  EXPECT_THAT(peer.session.join, ElementsAre("127.0.0.1:1", "127.0.0.1:3"));
  EXPECT_EQ(peer.session.listen, "127.0.0.1:2");
}

TEST_F(ReadLinks, say_how_others_are_let_in) {
  EXPECT_EQ(
      read({.run_folder = folder_}).admission,
      "--run " + folder_ + "; on other machines --token @FILE, made by: tw token " + folder_ + " --out FILE");
  EXPECT_EQ(
      read({.run_folder = folder_}, Spelling::python).admission,
      "run=" + folder_ + "; on other machines token=@FILE, made by: tw token " + folder_ + " --out FILE");
  EXPECT_EQ(read({.token = token()}).admission, "--token @FILE, a file with the same token");
  EXPECT_EQ(read({.token = token()}, Spelling::python).admission, "token=@FILE, a file with the same token");
  EXPECT_EQ(read({.insecure = true}).admission, "--insecure");
  EXPECT_EQ(read({.insecure = true}, Spelling::python).admission, "insecure=True");
  EXPECT_EQ(read({.insecure = true}).tls, nullptr);
}

TEST_F(ReadLinks, know_of_a_past_what_the_user_says) {
  const Options begun = read({.run_folder = folder_, .rejoin = true}, Spelling::python);
  EXPECT_EQ(begun.session.past, train::Past::begun);
  EXPECT_EQ(begun.session.past_found, "rejoin=True");
  EXPECT_EQ(read({.run_folder = folder_, .rejoin = true}).session.past_found, "--rejoin");
  EXPECT_EQ(read({.run_folder = folder_, .no_rejoin = true}).session.past, train::Past::over);
}

TEST_F(ReadLinks, warn_of_a_token_that_others_can_read) {
  EXPECT_THAT(read({.run_folder = folder_}).warnings, IsEmpty());
  const std::string file = token_file(folder_);
  std::filesystem::permissions(file, std::filesystem::perms::others_read, std::filesystem::perm_options::add);
  EXPECT_THAT(read({.token = "@" + file}).warnings,
              ElementsAre(file + " holds a token and is open to other users of this machine (mode 0604): " +
                          "chmod 600 " + file));
}

TEST_F(ReadLinks, take_a_token_from_a_file_that_an_editor_of_windows_wrote) {
  const std::string file = folder_ + "/by-editor";
  ASSERT_TRUE(write_file(file, "\xef\xbb\xbf" + token() + "\r\n", 0600));
  EXPECT_TRUE(read({.token = "@" + file}).tls);
}

TEST_F(ReadLinks, warn_a_program_that_its_run_is_open_to_the_network) {
  const auto warnings = [this](const LinkOptions& given) { return read(given, Spelling::python).warnings; };
  const std::string open = "without TLS (insecure=True): anybody on the network can read and change this run";
  EXPECT_THAT(warnings({.join = {"10.0.0.5:7000"}, .insecure = true}), ElementsAre(open));
  EXPECT_THAT(warnings({.listen = "0.0.0.0:7000", .insecure = true}), ElementsAre(open));
  EXPECT_THAT(warnings({.join = {"127.0.0.1:7"}, .listen = "127.0.0.1:0", .insecure = true}), IsEmpty());
}

TEST_F(ReadLinks, name_a_wrong_value_as_it_was_written) {
  const std::string fault = "=~/logs: only a shell takes ~ for a home folder; write the whole path";
  expect({.out = "~/logs"}, "--out " + fault.substr(1), "out" + fault);
  expect({.join = {"10.0.0.5"}, .token = token()},
         "--join 10.0.0.5: expected HOST:PORT, such as 10.0.0.5:7000",
         "join=10.0.0.5: expected HOST:PORT, such as 10.0.0.5:7000");
  expect({.listen = "10.0.0.5", .token = token()},
         "--listen 10.0.0.5: expected HOST:PORT, such as 10.0.0.5:7000",
         "listen=10.0.0.5: expected HOST:PORT, such as 10.0.0.5:7000");
  expect({.join = {"7000"}}, "--join 7000: expected HOST:PORT, such as 127.0.0.1:7000",
         "join=7000: expected HOST:PORT, such as 127.0.0.1:7000");
  expect({.listen = "127.0.0.1:22x"}, "--listen 127.0.0.1:22x: expected HOST:PORT",
         "listen=127.0.0.1:22x: expected HOST:PORT");
  expect({.id = "0"}, "--id 0: expected a whole number from 1 to 9007199254740991, for example --id 1",
         "id=0: expected a whole number from 1 to 9007199254740991, for example id=1");
  expect({.wait_for = "10001"},
         "--wait-for 10001: expected a whole number from 1 to 10000, for example --wait-for 10000",
         "wait_for=10001: expected a whole number from 1 to 10000, for example wait_for=10000");
  expect({.log_limit = "1"}, "--log-limit 1: expected a size from 64 KiB to 16 GiB, such as 256MiB",
         "log_limit=1: expected a size from 64 KiB to 16 GiB, such as 256MiB");
  const std::string site =
      ": not a site; expected PROVIDER:REGION or PROVIDER:REGION:ZONE, such as gcp:us-central1";
  expect({.site = "aws-us-east-1"}, "--site aws-us-east-1" + site, "site=aws-us-east-1" + site);
}

TEST_F(ReadLinks, name_two_options_of_which_one_is_too_many) {
  expect({.token = "t", .run_folder = "myrun"},
         "--token and --run myrun: a peer has one token; give one of the two",
         "token and run=myrun: a peer has one token; give one of the two");
  expect({.token = "t", .insecure = true},
         "--insecure and a token: TLS is either off or on, for all peers of a run; give one of the two",
         "insecure=True and a token: TLS is either off or on, for all peers of a run; give one of the two");
  expect({.rejoin = true, .no_rejoin = true},
         "--rejoin and --no-rejoin: the peers of a run may be alive or not; give one of the two",
         "rejoin=True and no_rejoin=True: the peers of a run may be alive or not; give one of the two");
}

TEST_F(ReadLinks, name_an_option_that_is_missing) {
  const std::string command_line =
      "peers show each other a token: give --token TOKEN or @FILE (from whoever began the run), or --run "
      "FOLDER (from `tw init FOLDER`); in a network that you trust with the model and the data, --insecure "
      "does without";
  const std::string python =
      "peers show each other a token: give token=TOKEN or @FILE (from whoever began the run), or run=FOLDER "
      "(from `tw init FOLDER`); in a network that you trust with the model and the data, insecure=True does "
      "without";
  expect({.join = {"a:1"}}, command_line, python);
  expect({.listen = "127.0.0.1:0"}, command_line, python);
  const auto waits = [](const std::string& option) { return option + ": nobody could join this peer; "; };
  expect({.wait_for = "2"}, waits("--wait-for 2") + command_line, waits("wait_for=2") + python);
  EXPECT_EQ(read({.wait_for = "2", .insecure = true}).session.wait_for, 2U);
  expect({.listen = "none", .token = token()},
         "--listen none: nobody could join a peer that only dials; give it --join HOST:PORT of another",
         "listen=none: nobody could join a peer that only dials; give it join=HOST:PORT of another");
}

TEST_F(ReadLinks, are_checked_as_texts_where_no_token_is_there_yet) {
  const auto refused = [](const LinkOptions& given, Spelling spelling) {
    const Status right = check_links(given, spelling);
    return right ? "nothing" : right.error().message;
  };
  const std::pair<LinkOptions, std::string> table[] = {
      {{.grace = "25"}, "grace=25: expected a duration from 1s to 1h, such as 25s"},
      {{.log_limit = "1"}, "log_limit=1: expected a size from 64 KiB to 16 GiB, such as 256MiB"},
      {{.notices = "foo"}, "notices=foo: expected auto, aws, gcp, azure, signal, none or file:PATH"},
      {{.watch = "8080"}, "watch=8080: expected HOST:PORT, such as 127.0.0.1:8080"},
      {{.listen = "1.2.3.4"}, "listen=1.2.3.4: expected HOST:PORT, such as 1.2.3.4:7000"},
      {{.join = {"a:1", "b"}}, "join=b: expected HOST:PORT, such as b:7000"},
      {{.role = "chef"}, "role=chef: expected peer or anchor"},
      {{.id = "0"}, "id=0: expected a whole number from 1 to 9007199254740991, for example id=1"},
      {{.wait_for = "0"}, "wait_for=0: expected a whole number from 1 to 10000, for example wait_for=1"},
      {{.usd_per_h = "-1"},
       "usd_per_h=-1: expected USD an hour from 0 to 100000, such as 0.35; tw run also takes catalog[:TYPE]"},
      {{.progress = "loud"}, "progress=loud: expected auto, line or off"},
      {{.token = "@t", .insecure = true},
       "insecure=True and a token: TLS is either off or on, for all peers of a run; give one of the two"},
      {{.rejoin = true, .anew = true},
       "rejoin=True and anew=True: the run goes on or begins anew; give one of the two"},
  };
  for (const auto& [given, message] : table) EXPECT_EQ(refused(given, Spelling::python), message);
  EXPECT_EQ(refused({.grace = "25"}, Spelling::command_line),
            "--grace 25: expected a duration from 1s to 1h, such as 25s");
  EXPECT_THAT(refused({.usd_per_h = "catalog"}, Spelling::python), HasSubstr("does not ask the catalogs"));
  const auto price = [](const std::string&, const std::string&, bool) {
    return Result<double>(Error{"asked"});
  };
  EXPECT_TRUE(check_links({.usd_per_h = "catalog"}, Spelling::command_line, price)) << "no catalog is asked";
  // The program, or who starts it, may add the token.
  EXPECT_EQ(refused({.wait_for = "2", .token = "@" + folder_ + "/none"}, Spelling::python), "nothing");
  EXPECT_EQ(refused({.join = {"a:1"}, .listen = "none"}, Spelling::python), "nothing");
  const LinkOptions empty{.log_limit = "", .wait_for = "", .notices = "", .grace = "", .progress = ""};
  EXPECT_EQ(refused(empty, Spelling::command_line), "nothing") << "an empty text was not given";
}

TEST(Settings, that_there_are_none_of_are_named_with_the_nearest_one) {
  EXPECT_EQ(unknown_setting("ruonds").message, "there is no setting ruonds; did you mean \"rounds\"?");
  EXPECT_EQ(unknown_setting("grac").message, "there is no setting grac; did you mean \"grace\"?");
  EXPECT_EQ(unknown_setting("xyzzy").message,
            "there is no setting xyzzy; docs/run_file.md and docs/python.md list all settings");
  EXPECT_EQ(unknown_setting("training.budget_usd").message,
            "there is no setting training.budget_usd; did you mean \"budget_usd\"?");
}

TEST_F(ReadLinks, say_what_is_wrong_with_a_token) {
  const std::string no_token =
      "what was given is no token: it does not begin with tw1-; expected the line that `tw token` printed";
  expect({.token = "nonsense"}, "--token: " + no_token, "token: " + no_token);
  const std::string file = folder_ + "/token", found = no_token + "; " + file + " is a file: ";
  expect({.token = file}, "--token: " + found + "--token @" + file, "token: " + found + "token=@" + file);
  EXPECT_THAT(complaint({.token = "@" + folder_ + "/x"}, Spelling::command_line),
              HasSubstr("--token @" + folder_ + "/x: "));
  EXPECT_THAT(complaint({.token = "@" + folder_ + "/x"}, Spelling::python),
              HasSubstr("token=@" + folder_ + "/x: "));
  EXPECT_THAT(complaint({.run_folder = folder_ + "/x"}, Spelling::command_line),
              HasSubstr("--run " + folder_ + "/x: " + folder_ + "/x/token: "));
  EXPECT_THAT(complaint({.run_folder = folder_ + "/x"}, Spelling::python),
              HasSubstr("; `tw init FOLDER` makes a run folder, and `tw token " + folder_ + "/x --out " +
                        folder_ + "/x/token` the token of one"));
  std::ofstream(folder_ + "/torn") << "not a token";
  EXPECT_THAT(complaint({.token = "@" + folder_ + "/torn"}, Spelling::command_line),
              HasSubstr("--token @" + folder_ + "/torn: what the file holds "));
  EXPECT_THAT(complaint({.token = "@" + folder_ + "/torn"}, Spelling::python),
              HasSubstr("token=@" + folder_ + "/torn: what the file holds "));
  const std::string old = token({}, -60);
  EXPECT_THAT(complaint({.token = old}, Spelling::command_line),
              AllOf(StartsWith("--token: "), HasSubstr("expired on")));
  EXPECT_THAT(complaint({.token = old}, Spelling::python), StartsWith("token: "));
}

class LookAtPast : public ReadLinks {
 protected:
  void SetUp() override {
    ReadLinks::SetUp();
    std::ofstream log(folder_ + "/events-1.jsonl");
    const world::Event start{.fact = event::Start{.digest = to_string(train::run_digest({}, 7))}};
    log << monitor::to_json_line({PeerId{1}, 0, start}) << '\n'
        << monitor::to_json_line({PeerId{1}, 0, {.at = {}, .round = 3, .fact = event::Commit{}}}) << '\n';
  }
};

TEST_F(LookAtPast, finds_the_log_of_the_same_run_and_model) {
  Options same = read({.out = folder_, .run_folder = folder_});
  look_at_past(same, 7);
  EXPECT_EQ(same.session.past, train::Past::begun);
  EXPECT_EQ(same.session.past_found, "its event log is " + folder_ + "/events-1.jsonl");
  Options other = read({.out = folder_, .run_folder = folder_});
  look_at_past(other, 8);
  EXPECT_EQ(other.session.past, train::Past::unknown);
}

TEST_F(LookAtPast, keeps_what_the_user_said) {
  Options over = read({.out = folder_, .run_folder = folder_, .no_rejoin = true});
  look_at_past(over, 7);
  EXPECT_EQ(over.session.past, train::Past::over);
  EXPECT_EQ(over.session.past_rounds, 3U) << "nobody begins over them";
}

TEST_F(LookAtPast, knows_the_rounds_that_its_log_shows_unless_the_user_begins_anew) {
  Options same = read({.out = folder_, .run_folder = folder_});
  look_at_past(same, 7);
  EXPECT_EQ(same.session.past_rounds, 3U);
  Options anew = read({.out = folder_, .run_folder = folder_, .anew = true});
  look_at_past(anew, 7);
  EXPECT_EQ(anew.session.past_rounds, 0U);
  EXPECT_TRUE(anew.session.anew);
}

TEST_F(ReadLinks, places_checkpoints_in_a_folder_of_the_run) {
  const std::string id = to_string(train::run_digest({}, 7)).substr(0, 8);
  const auto placed = [](Options options, const train::CheckpointOptions& given = {}) {
    options.session.run.checkpoint = given;
    place_checkpoints(options, 7);
    return options.session.run.checkpoint;
  };
  const train::CheckpointOptions out = placed(read({.out = folder_ + "/logs"}));
  EXPECT_EQ(out.folder, folder_ + "/logs/checkpoints/" + id);
  EXPECT_TRUE(out.is_usual);
  EXPECT_EQ(checkpoint_words(out), "checkpoints in " + out.folder + ", every 5 min");
  Options of_run = read({});
  of_run.run_folder = folder_;
  EXPECT_EQ(placed(std::move(of_run)).folder, folder_ + "/checkpoints/" + id);
  const train::CheckpointOptions chosen = placed(read({}), {.folder = "/ck", .every = 10});
  EXPECT_EQ(checkpoint_words(chosen), "checkpoints in /ck, every 10 rounds");
  EXPECT_FALSE(chosen.is_usual);
  EXPECT_EQ(chosen.interval, Duration{});
  EXPECT_TRUE(placed(read({}), {.folder = "none"}).folder.empty());
}

TEST_F(ReadLinks, stay_with_their_folders_when_the_program_changes_its_working_folder) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  const std::string here = std::filesystem::current_path();
  const Options links = read({.out = "logs/", .run_folder = "."});
  Options alone = read({});
  place_checkpoints(alone, 7);
  std::filesystem::current_path(before);
  EXPECT_EQ(links.out, here + "/logs");
  EXPECT_EQ(links.run_folder, here);
  EXPECT_THAT(alone.session.run.checkpoint.folder, StartsWith(here + "/tradewind-checkpoints/"));
}

TEST_F(ReadLinks, says_that_there_are_no_checkpoints_where_none_can_be_written) {
  std::ofstream(folder_ + "/file") << "in the way";
  Options options = read({.out = folder_ + "/file"});
  place_checkpoints(options, 7);
  EXPECT_TRUE(options.session.run.checkpoint.folder.empty());
  ASSERT_EQ(options.warnings.size(), 1U);
  EXPECT_THAT(options.warnings.front(), StartsWith("no checkpoints: " + folder_ + "/file/checkpoints/"));
}

/// A run of before, with a batch of 16, that left a checkpoint of round 5 in `out`.
class BesideAnotherRun : public ReadLinks {
 protected:
  static train::RunOptions with_batch(std::uint64_t size) {
    train::RunOptions run;
    run.batch.size = size;
    return run;
  }

  void leave_checkpoint(bool last) {
    const train::RunFacts facts(with_batch(16), 7);
    wire::Record record = sync::sample::history(1, 5).back();
    record.run = facts.digest();
    record.last = last;
    host::DiskFiles files;
    sync::CheckpointStore store(files,
                                {.folder = folder_ + "/checkpoints/" + to_string(facts.digest()).substr(0, 8),
                                 .unique = "1",
                                 .words = facts.words()});
    ASSERT_TRUE(store.save(sync::sample::image(record)));
  }

  std::vector<std::string> warnings(std::uint64_t batch, LinkOptions given = {}) {
    given.out = folder_;
    Options options = read(given);
    options.session.run = with_batch(batch);
    look_at_past(options, 7);
    place_checkpoints(options, 7);
    return options.warnings;
  }
};

TEST_F(BesideAnotherRun, says_which_setting_differs_before_it_begins_at_round_1) {
  leave_checkpoint(false);
  EXPECT_THAT(warnings(32),
              ElementsAre(AllOf(StartsWith("this run has no checkpoint in " + folder_ + "/checkpoints/"),
                                HasSubstr("is of round 5 of another run that has not ended: there "
                                          "\"batch=16\", here \"batch=32\". To resume that one, "))));
  EXPECT_THAT(warnings(16), IsEmpty()) << "it goes on";
  EXPECT_THAT(warnings(32, {.anew = true}), IsEmpty());
  EXPECT_THAT(warnings(32, {.join = {"127.0.0.1:7"}, .run_folder = folder_}), IsEmpty())
      << "others have its state";
}

TEST_F(BesideAnotherRun, that_is_complete_says_nothing) {
  leave_checkpoint(true);
  EXPECT_THAT(warnings(32), IsEmpty());
}

TEST_F(BesideAnotherRun, that_left_a_log_alone_names_that) {
  std::ofstream log(folder_ + "/events-1.jsonl");
  const world::Event start{.fact = event::Start{.digest = to_string(train::run_digest(with_batch(16), 7))}};
  log << monitor::to_json_line({PeerId{1}, 0, start}) << '\n'
      << monitor::to_json_line({PeerId{1}, 0, {.at = {}, .round = 3, .fact = event::Commit{}}}) << std::endl;
  EXPECT_THAT(warnings(32),
              ElementsAre(HasSubstr("events-1.jsonl shows 3 rounds of another run that has not ended")));
  EXPECT_THAT(warnings(16), IsEmpty());
}

TEST_F(ReadLinks, asks_the_front_for_the_price_of_the_catalogs) {
  const LinkOptions given{.site = "aws:us-east-1", .role = "anchor", .usd_per_h = "catalog:g5.xlarge"};
  std::string asked;
  const auto catalog_price = [&](const std::string& price, const std::string& site, bool anchor) {
    asked = price + " at " + site + (anchor ? " on demand" : " as spot");
    return Result<double>(0.5);
  };
  const auto options = read_links(given, Spelling::command_line, catalog_price);
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options.value().usd_per_h, 0.5);
  EXPECT_EQ(asked, "catalog:g5.xlarge at aws:us-east-1 on demand");
  EXPECT_THAT(complaint(given, Spelling::python),
              AllOf(StartsWith("usd_per_h=catalog:g5.xlarge: "), HasSubstr("tw run --usd-per-h")));
}

TEST_F(ReadLinks, remember_why_the_place_where_peers_meet_could_not_be_read) {
  Options peer = read({.listen = "127.0.0.1:0", .run_folder = folder_});
  std::ofstream(folder_ + "/file") << "no folder";
  peer.session.run.checkpoint.rendezvous = folder_ + "/file";
  look_for_peers(peer, 4);
  EXPECT_THAT(peer.session.meeting.unasked, HasSubstr(folder_ + "/file"));
}

// A notice outlives its peer by minutes: another run's peer at that address turned a founder away for good.
TEST_F(ReadLinks, believe_addresses_in_notices_less_than_those_of_the_user) {
  Options peer = read({.listen = "127.0.0.1:0", .run_folder = folder_});
  peer.session.run.checkpoint.rendezvous = folder_ + "/peers";
  host::StoreFiles files(MeetingPlace::kEffort);
  MeetingPlace other(files, folder_ + "/peers",
                     {*peer.token, *peer.tls, train::run_digest(peer.session.run, 4), PeerId{7}},
                     host::now_unix_s);
  ASSERT_TRUE(other.renew("127.0.0.1:7000"));
  peer.warnings.clear();
  look_for_peers(peer, 4);
  EXPECT_THAT(peer.session.join, IsEmpty());
  EXPECT_THAT(peer.session.found, ElementsAre("127.0.0.1:7000"));
  EXPECT_TRUE(peer.session.founds());
  EXPECT_THAT(peer.warnings, ElementsAre("before it begins the run, it asks peers that " + folder_ +
                                         "/peers shows alive: 127.0.0.1:7000"));
}

}  // namespace
}  // namespace tw::peer
