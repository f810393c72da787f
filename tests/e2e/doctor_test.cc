// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "e2e/program.h"

namespace tw {
namespace {

using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using testing::StartsWith;

class Doctor : public ProgramTest {
 protected:
  /// "ok: 20.5 GiB free" and the like by check, one after the other. The exit code says whether one of them
  /// will hurt.
  std::map<std::string, std::string> verdicts(std::vector<std::string> more) {
    std::vector<std::string> words = {"doctor", "--json", "--folder", folder()};
    std::ranges::move(more, std::back_inserter(words));
    Program doctor(words, {.output = path("doctor.json"), .separate_errors = path("doctor.err")});
    const int code = doctor.wait();
    const auto said = nlohmann::json::parse(doctor.output(), nullptr, false);
    EXPECT_TRUE(said.is_object()) << content_of(path("doctor.err"));
    std::map<std::string, std::string> found;
    if (!said.is_object()) return found;
    EXPECT_EQ(code, said["hurts"].get<bool>() ? 1 : 0);
    for (const auto& finding : said["findings"]) {
      found[finding["check"]] +=
          finding["verdict"].get<std::string>() + ": " + finding["text"].get<std::string>() + "\n";
      EXPECT_TRUE(finding["verdict"] != "will hurt" || finding["remedy"] != "") << finding;
    }
    return found;
  }

  Program answering() const {
    return tw({"net", "probe", "--site", "gcp:us-west1", "--listen", "127.0.0.1:0", "--run", path("run")},
              "probe");
  }

  static std::string address_of_probe(const Program& probe) {
    const std::string begin = "answers on ";
    wait_until([&] { return probe.says("; ends"); });
    const std::string text = probe.output();
    const auto from = text.find(begin) + begin.size();
    return text.substr(from, text.find(';', from) - from);
  }

  std::string token() const { return "@" + path("run/token"); }
};

TEST_F(Doctor, tries_the_place_where_peers_meet) {
  std::ofstream(path("file")) << "in the way";
  EXPECT_THAT(verdicts({"--rendezvous", path("shared")})["rendezvous"],
              StartsWith("ok: " + path("shared") + " can be listed, read and written; 0 notices"));
  EXPECT_FALSE(std::filesystem::exists(path("shared"))) << "it was not there before";
  EXPECT_THAT(verdicts({"--rendezvous", "file:" + path("file/x")})["rendezvous"], StartsWith("will hurt: "));
}

TEST_F(Doctor, looks_at_the_machine_the_token_and_whether_the_model_fits) {
  std::ofstream(path("profile.yaml")) << "model: m\nparams_m: 1\ntensors: 2\nstate_mb: 12\nmemory_mb: 9e9\n";
  const auto found = verdicts({token(), path("profile.yaml")});
  std::vector<std::string> checks;
  for (const auto& [check, verdict] : found) checks.push_back(check);
  EXPECT_THAT(checks, IsSupersetOf({"cpu", "memory", "gpu", "open files", "disk", "token"}));
  for (const char* check : {"open files", "token"}) EXPECT_THAT(found.at(check), StartsWith("ok: ")) << check;
  EXPECT_THAT(found.at("disk"), HasSubstr("a checkpoint of 11 MiB takes"));
  EXPECT_THAT(found.at("memory"), StartsWith("will hurt: "));
}

TEST_F(Doctor, another_machine_measures_the_way_to_it_and_back) {
  std::string address;
  {
    const Program probe = answering();
    address = address_of_probe(probe);
    const auto found =
        verdicts({token(), "--site", "onprem:eu", "--probe", address, "--listen", "127.0.0.1:0"});
    EXPECT_THAT(found.at("reach"), HasSubstr("ok: " + address));
    EXPECT_THAT(found.at("door"), HasSubstr("ok: " + address + " can dial"));
    EXPECT_THAT(found.at("clock"), StartsWith("ok: "));
    EXPECT_THAT(found.at("bandwidth"), HasSubstr("Mbit/s out"));
  }
  const auto found = verdicts({token(), "--site", "onprem:eu", "--probe", address});
  EXPECT_THAT(found.at("reach"), HasSubstr("will hurt: " + address));
}

TEST_F(Doctor, does_not_show_what_might_be_a_secret) {
  Program doctor = tw({"doctor", "nonsense"}, "doctor");
  EXPECT_EQ(doctor.wait(), 2);
  EXPECT_THAT(doctor.output(), HasSubstr("TOKEN: what was given is no token"));
  EXPECT_THAT(doctor.output(), Not(HasSubstr("nonsense")));
}

}  // namespace
}  // namespace tw
