// SPDX-License-Identifier: Apache-2.0
#include "cli/peer_process.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/printable.h"
#include "cli/commands.h"
#include "cli/terminal.h"

namespace tw::cli {

PeerProcess::PeerProcess(peer::Options options, Words words, std::unique_ptr<train::Trainer> trainer,
                         train::SessionObserver* observer)
    : words_(std::move(words)),
      trainer_(std::move(trainer)),
      compute_(loop_, [this](const std::string& what) { peer_.fail("training failed: " + what); }),
      peer_(loop_, compute_, std::move(options),
            {.shown = this, .decisions = observer, .warn = warn, .over = [this] { loop_.stop(); }},
            *trainer_) {}

int PeerProcess::run() {
  loop_.on_signal([this](int) { on_signal(); });
  const Result<std::string> address = peer_.start();
  if (!address) return complain(address.error().message, kFailed);
  show_how_to_join(address.value());
  loop_.run();

  const std::string failure = peer_.failure(), ended = peer_.view().ended;
  peer_.farewell();
  if (signals_ > 1) std::_Exit(kInterrupted);  // waits for no work under way
  if (!failure.empty()) return complain(failure, kFailed);
  const std::string after =
      signals_ > 0 ? fmt::format(", {:.2f} s after the signal", to_seconds(loop_.now() - signalled_at_)) : "";
  say(ended + after);
  return kDone;
}

void PeerProcess::show_how_to_join(const std::string& address) const {
  const peer::Options& options = peer_.options();
  if (!options.tls) say("without TLS (--insecure): anybody on the network can read and change this run");
  if (address.empty()) return say("dials others, and listens nowhere");
  if (options.directory) say("others find this run with: --bootstrap " + peer_.meeting_point());
  if (!options.session.join.empty()) return say("listening on " + address);
  if (options.admission.empty())
    return say("trains alone; for company: tw init FOLDER, tw train --run FOLDER");
  say(fmt::format("others join with: tw train {} --join {} {}", words_.run_file, address, options.admission));
}

void PeerProcess::emit(const world::Event& event) {
  if (words_.quiet) return;
  if (const auto line = progress_.line_for(event)) say(*line);
}

void PeerProcess::say(const std::string& line) const {
  if (words_.quiet) return;
  show_news(printable_line(line));
}

void PeerProcess::on_signal() {
  ++signals_;
  if (signals_ == 1) {
    signalled_at_ = loop_.now();
    say("leaving after this round; once more to leave at once");
  }
  peer_.leave();
}

}  // namespace tw::cli
