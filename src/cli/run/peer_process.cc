// SPDX-License-Identifier: Apache-2.0
#include "cli/run/peer_process.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdlib>

#include "base/text/printable.h"
#include "cli/commands.h"
#include "cli/terminal/terminal.h"
#include "host/system/early_signals.h"

namespace tw::cli {

PeerProcess::PeerProcess(peer::Options options, bool quiet, std::unique_ptr<train::Model> model,
                         train::SessionObserver* observer)
    : quiet_(quiet),
      model_(std::move(model)),
      compute_(loop_, [this](const std::string& what) { peer_.fail("training failed: " + what); }),
      peer_(loop_, compute_, std::move(options),
            {.shown = this, .decisions = observer, .over = [this] { loop_.stop(); }}, *model_) {}

int PeerProcess::run() {
  loop_.on_signal([this](int signal) { on_signal(signal); }, {SIGINT, SIGTERM});
  if (!host::ignores(SIGHUP)) loop_.on_signal([this](int signal) { on_signal(signal); }, {SIGHUP});
  // With --notices none they keep what they do to any process.
  if (peer_.options().notices.ask != spot::NoticeOptions::Ask::none)
    loop_.on_signal([this](int signal) { on_signal(signal); }, {SIGUSR1, SIGUSR2});
  const Result<std::string> address = peer_.start();
  if (!address) return complain(address.error().message, exit_code());
  loop_.run();

  peer_.farewell();
  const std::string failure = peer_.view().failure, ended = peer_.view().ended;
  if (!peer_.finished_work()) std::_Exit(exit_code());  // waits for no work under way
  if (!failure.empty()) return complain(failure, exit_code());
  if (const std::string wrong = flaw(); !wrong.empty())
    return complain(fmt::format("{}, but {}", ended, wrong), exit_code());
  const std::string after =
      told_at_ ? fmt::format(", {:.2f} s after {}", to_seconds(loop_.now() - *told_at_), told_by_) : "";
  say(ended + after);
  return exit_code();
}

bool PeerProcess::differs() const { return !peer_.live().difference_at_the_end().empty(); }

/// What is wrong with a run that is complete; empty: nothing. A warning says more.
std::string PeerProcess::flaw() const {
  if (peer_.ending() != train::Ending::complete) return "";
  if (differs()) return "other peers have other parameters";
  const std::string& unsaved = peer_.troubles().unsaved();
  return unsaved.empty() ? "" : "its last checkpoint is missing: " + unsaved;
}

int PeerProcess::exit_code() const {
  switch (peer_.ending()) {
    case train::Ending::complete:
      if (differs()) return kUsage;  // no start mends that
      return flaw().empty() ? kDone : kFailed;
    case train::Ending::notice:
    case train::Ending::left:
    case train::Ending::unreached:
      return kGoesOn;
    case train::Ending::interrupted:
      return kInterrupted;
    case train::Ending::lost:
    case train::Ending::taken:
      return kUsage;  // no launcher starts it again
    case train::Ending::none:
    case train::Ending::failed:
      break;
  }
  return kFailed;
}

void PeerProcess::emit(const world::Event& event) {
  const auto* notice = event.as<event::Notice>();
  if (notice && notice->goes() && !told_at_) {
    told_at_ = event.at;
    told_by_ = "the notice";
  }
  if (event.as<event::Warn>()) return warn(event.why);
  if (quiet_) return;
  const auto line = progress_.line_for(event);
  if (!line) return;
  const bool may_end_now = interrupted_ && event.as<event::Wait>() && peer_.finished();
  say(*line + (may_end_now ? "; a second Ctrl-C ends it now" : ""));
}

void PeerProcess::say(const std::string& line) const {
  if (quiet_) return;
  show_news(printable_line(line));
}

void PeerProcess::on_signal(int signal) {
  interrupted_ = interrupted_ || signal == SIGINT;
  if (signal == SIGINT && !told_at_) {
    told_at_ = loop_.now();
    told_by_ = "the signal";
    say("leaving after this round; once more to leave at once");
  }
  peer_.take(signal == SIGINT    ? spot::Signal::interrupt
             : signal == SIGTERM ? spot::Signal::terminate
             : signal == SIGHUP  ? spot::Signal::hangup
                                 : spot::Signal::user);
}

}  // namespace tw::cli
