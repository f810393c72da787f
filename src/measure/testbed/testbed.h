// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "swarm/shares/participant.h"

/// Where the processes of `tw bench reduce` run.
namespace tw::measure {

/// One machine, real or emulated.
struct Host {
  std::string name;
  std::vector<std::string> enter;  ///< words in front of a command that is to run there
  std::string address = "127.0.0.1";
  std::string site{};  ///< empty: one of its own
};

/// Between two sites of a testbed.
struct SiteLink {
  std::string from, to;
  double bit_s = 0;  ///< its own rate, or that of a host where it has none
};

/// What `tw-wan TOPOLOGY show` prints about the first hosts of a testbed.
struct TestbedPlan {
  std::string name;
  std::string about;
  double scale = 1;                       ///< by which all its rates are divided
  std::vector<Host> hosts;                ///< without enter
  std::vector<SiteLink> links;            ///< of the site of its first host
  std::vector<swarm::Participant> cards;  ///< the bandwidths of these hosts, and those
  std::vector<swarm::Participant>
      fences;  ///< of their sites towards each other: what goes in and out of one together
};

/// The testbed of a topology, with as many of its hosts as wanted, 0 for all. An error when it has fewer.
Result<TestbedPlan> parse_testbed(const std::string& show_json, std::size_t hosts);

/// The seconds below which no averaging of so many wire bytes a vector can come on this testbed.
double bound_seconds(std::uint64_t wire_bytes, const TestbedPlan& plan);

/// How the box fared that carries the packets.
struct BoxReport {
  double cpu_share_max = 0;  ///< of one core, in its worst second
  std::string limited_by;    ///< why what was measured is the box's limit; empty: it is not
};

Result<BoxReport> parse_box(const std::string& status_json);

/// A testbed of `tw-wan`, up as long as this object lives.
class Testbed {
 public:
  /// `topology`: a file, or the name of one that ships.
  static Result<Testbed> up(const std::string& topology, std::size_t hosts);

  Testbed(Testbed&& other) noexcept
      : topology_(std::exchange(other.topology_, {})), plan_(std::move(other.plan_)) {}

  Testbed(const Testbed&) = delete;
  Testbed& operator=(Testbed&&) = delete;
  ~Testbed();

  const TestbedPlan& plan() const { return plan_; }

  /// With enter.
  std::vector<Host> hosts() const;

  Result<BoxReport> box() const;

  /// The links of the first site carry this share of their rate, until the next call.
  Status limit_first_site(double share) const;

 private:
  Testbed(std::string topology, TestbedPlan plan) : topology_(std::move(topology)), plan_(std::move(plan)) {}

  std::string topology_;
  TestbedPlan plan_;
};

}  // namespace tw::measure
