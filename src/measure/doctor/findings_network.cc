// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/text/number.h"
#include "measure/doctor/findings.h"

namespace tw::measure {
namespace {

/// Below this share of what the plan assumes its prices are wrong, and rounds take much longer.
constexpr double kLessThanAssumed = 0.8, kMuchLessThanAssumed = 0.5;

std::string listening_command(const std::string& address) {
  return fmt::format("on the other machine: tw net probe --site SITE --token @FILE --listen {}", address);
}

/// What lets others dial this port, in the words of the cloud.
std::string opening_command(const DoorFacts& door, bool all_private) {
  const std::string port = door.listen.substr(door.listen.rfind(':') + 1);
  if (door.provider == "aws")
    return fmt::format(
        "aws ec2 authorize-security-group-ingress --group-id GROUP --protocol tcp --port {} "
        "--cidr 0.0.0.0/0",
        port);
  if (door.provider == "gcp")
    return fmt::format("gcloud compute firewall-rules create tradewind --network NETWORK --allow tcp:{}",
                       port);
  if (door.provider == "azure")
    return fmt::format("az vm open-port --resource-group GROUP --name MACHINE --port {}", port);
  return fmt::format(
      "sudo ufw allow {}/tcp{}", port,
      all_private ? fmt::format(", and at the router forward port {} to this machine", port) : "");
}

}  // namespace

bool is_private(std::string_view address) {
  constexpr std::array<std::string_view, 6> kBegins = {"10.", "192.168.", "169.254.", "127.", "fc", "fd"};
  const bool known = std::any_of(kBegins.begin(), kBegins.end(),
                                 [&](std::string_view begin) { return address.starts_with(begin); });
  if (known || address.starts_with("fe80:") || address == "::1") return true;
  const std::size_t dot = address.find('.');
  if (dot == std::string_view::npos) return false;
  const auto second = parse_number<unsigned>(address.substr(dot + 1, address.find('.', dot + 1) - dot - 1));
  if (!second) return false;
  const bool company = address.starts_with("172.") && *second >= 16 && *second < 32;
  return company || (address.starts_with("100.") && *second >= 64 && *second < 128);
}

Finding judge_reach(const PeerFacts& peer) {
  Finding finding{.check = "reach"};
  switch (peer.answer) {
    case PeerFacts::Answer::probe:
      finding.text =
          fmt::format("{}: a probe answers in {:.2f} ms", peer.address, 1e3 * peer.rtt_s.value_or(0));
      break;
    case PeerFacts::Answer::peer:
      finding.text = peer.address + ": a peer answers, and takes the token";
      break;
    case PeerFacts::Answer::nobody:
      finding.verdict = Verdict::hurts;
      finding.text = fmt::format("{}: {}", peer.address, peer.why);
      finding.remedy =
          "let this machine dial it: a running peer or probe there (--listen), its port open in firewall and "
          "security group";
  }
  return finding;
}

Finding judge_bandwidth(const PeerFacts& peer) {
  Finding finding{.check = "bandwidth"};
  finding.text =
      fmt::format("{}: {:.0f} Mbit/s out, {:.0f} Mbit/s in", peer.address, peer.out_mbit_s, peer.in_mbit_s);
  if (!peer.assumed_mbit_s) {
    finding.verdict = Verdict::note;
    finding.text += "; nothing to compare it with";
    finding.remedy = "give --site PROVIDER:REGION of this machine";
    return finding;
  }
  const double least = std::min(peer.out_mbit_s, peer.in_mbit_s);
  const double share = least / std::max(*peer.assumed_mbit_s, 1e-9);
  finding.text += fmt::format("; a plan assumes {:.0f}", *peer.assumed_mbit_s);
  finding.verdict = share < kMuchLessThanAssumed ? Verdict::hurts
                    : share < kLessThanAssumed   ? Verdict::note
                                                 : Verdict::ok;
  if (finding.verdict != Verdict::ok)
    finding.remedy =
        "plan with what is measured: tw net probe --site SITE HOST:PORT --token @FILE --out network.csv, "
        "then "
        "tw plan JOB.yaml --profile network.csv";
  return finding;
}

Finding judge_door(const DoorFacts& door) {
  Finding finding{.check = "door"};
  const bool all_private = std::all_of(door.own_addresses.begin(), door.own_addresses.end(), is_private);
  const std::string own =
      door.own_addresses.empty() ? "none" : fmt::format("{}", fmt::join(door.own_addresses, ", "));
  if (door.probe.empty() || door.listen.empty()) {
    finding.verdict = Verdict::note;
    finding.text =
        fmt::format("whether others can dial this machine, only another one can tell; addresses: {}{}", own,
                    all_private ? " (private: from outside, only through a forwarded port)" : "");
    finding.remedy =
        listening_command("HOST:7100") + "; here: tw doctor @FILE --probe HOST:7100 --listen THIS:7000";
    return finding;
  }
  if (!door.failed) {
    finding.text = fmt::format("{} can dial {}", door.probe, door.listen);
    return finding;
  }
  finding.verdict = Verdict::hurts;
  finding.text = fmt::format("{} cannot dial {}: {}", door.probe, door.listen, *door.failed);
  finding.remedy = opening_command(door, all_private) +
                   "; or train with --listen none: this peer then dials the others, which must be reachable";
  return finding;
}

}  // namespace tw::measure
