// SPDX-License-Identifier: Apache-2.0
#include "monitor/report_text.h"

#include <fmt/format.h>

#include "base/printable.h"

namespace tw::monitor {

namespace {

std::string line(const char* name, const std::string& text) { return fmt::format("{:<15}{}\n", name, text); }

std::string quantity(double bytes) {
  if (bytes >= 1e9) return fmt::format("{:.2f} GB", bytes / 1e9);
  if (bytes >= 1e6) return fmt::format("{:.1f} MB", bytes / 1e6);
  return fmt::format("{:.0f} kB", bytes / 1e3);
}

std::string traffic(const PeerSummary& peer) {
  if (!peer.bytes_sent || !peer.bytes_received) return "";
  return fmt::format("{:>12}{:>12}", quantity(static_cast<double>(*peer.bytes_sent)),
                     quantity(static_cast<double>(*peer.bytes_received)));
}

std::string render_phases(const Summary& summary) {
  if (!summary.calc_s || !summary.comm_s) return "";
  const std::string share =
      summary.granularity ? fmt::format("{:.2f}", *summary.granularity) : "no communication";
  return line("granularity", fmt::format("{} (calculation {:.3f} s, communication {:.3f} s a round)", share,
                                         *summary.calc_s, *summary.comm_s));
}

std::string render_loss(const LostPeer& lost) {
  std::string text = fmt::format("peer {} in round {}", to_string(lost.peer), lost.round);
  text += lost.detected_s ? fmt::format(", detected after {:.3f} s", *lost.detected_s) : ", nobody noticed";
  if (lost.extra_s) text += fmt::format(", cost {:+.3f} s", *lost.extra_s);
  if (!lost.why.empty()) text += fmt::format(" ({})", printable_line(lost.why));
  return line("lost", text);
}

std::string render_arrival(const JoinedPeer& joined) {
  const std::string seconds = joined.seconds ? fmt::format("contributed after {:.3f} s", *joined.seconds)
                                             : std::string("contributed nothing");
  return line("joined",
              fmt::format("peer {} in round {}, {}", to_string(joined.peer), joined.round, seconds));
}

std::string render_identity(const Summary& summary) {
  if (!summary.difference.empty()) return line("parameters", "DIFFER: " + summary.difference);
  if (!summary.identical) return line("parameters", "none were logged");
  return line("parameters", "identical on all peers in every round");
}

}  // namespace

std::string render(const Summary& summary) {
  const std::string unlogged =
      summary.unlogged_rounds > 0 ? fmt::format(", and {} that no log holds", summary.unlogged_rounds) : "";
  std::string text = line("rounds", std::to_string(summary.rounds) + unlogged);
  text += line("samples", fmt::format("{} ({:.0f} samples/s)", summary.samples, summary.samples_per_s));
  if (summary.test_accuracy)
    text += line("test accuracy", fmt::format("{:.2f} %", 100 * *summary.test_accuracy));
  if (summary.loss) text += line("test loss", fmt::format("{:.4f}", *summary.loss));
  text += render_phases(summary);
  if (summary.insecure)
    text +=
        line("insecure", "without TLS (--insecure): anybody on the network could read and change this run");
  for (const LostPeer& lost : summary.lost) text += render_loss(lost);
  for (const JoinedPeer& joined : summary.joined) text += render_arrival(joined);
  for (const LeftPeer& left : summary.left)
    text += line("left", fmt::format("peer {} in round {}", to_string(left.peer), left.round));
  for (const MissingEvents& gap : summary.missing) text += line("missing", to_string(gap));
  text += render_identity(summary);

  text += fmt::format("\n{:<22}{:>8}{:>12}{:>12}{:>12}  {}\n", "peer", "rounds", "samples", "sent",
                      "received", "final parameters");
  for (const PeerSummary& peer : summary.peers)
    text += fmt::format("{:<22}{:>8}{:>12}{:>24}  {}\n", to_string(peer.id), peer.rounds, peer.samples,
                        traffic(peer), peer.digest);
  return text;
}

}  // namespace tw::monitor
