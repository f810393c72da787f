// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "host/identity/tls.h"
#include "host/tcp/stream_count.h"
#include "host/web/server.h"
#include "monitor/logs/event_log_json.h"
#include "peer/link_options.h"
#include "peer/token_file.h"
#include "spot/sources.h"
#include "train/session/session.h"

namespace tw::peer {

/// Whether lines about rounds and peers are written for people.
enum class Progress {
  automatic,  ///< to a terminal
  line,
  off,
};

/// Everything that a peer needs besides its model.
struct Options {
  train::SessionOptions session;
  std::string out;         ///< folder of the event log, absolute; empty: none
  std::string run_folder;  ///< of `tw init`, absolute; empty: none
  monitor::LogLimits log_limits;
  spot::NoticeOptions notices;
  std::optional<double> usd_per_h;  ///< price of the machine; nothing: not known
  Progress progress = Progress::automatic;
  bool listens_as_usual = false;                ///< the user does not say where
  bool pays_spot = false;                       ///< usd_per_h is a price of spot
  int most_streams = host::StreamCount::kMost;  ///< of data, to each other peer
  std::unique_ptr<host::Tls> tls;               ///< nothing: without TLS and tokens
  std::optional<wire::Token> token;             ///< nothing: the same, or this peer trains alone
  wire::Token::Key run_key{};                   ///< of its token, also where it trains alone; zeros: insecure
  std::optional<host::WebOptions> watch;        ///< where the run is shown; nothing: nowhere
  std::string admission;              ///< how others get what lets them in: the end of a line for the user
  std::vector<std::string> warnings;  ///< of these options; the peer says them
  std::string gpu;                    ///< on which the program computes, in words; empty: none is known
  std::string gpu_uuid;               ///< the same, as host::GpuMeter takes it; empty: it is another's
};

/// What the catalogs say that this machine costs, in USD an hour. price: "catalog" or "catalog:TYPE"; site:
/// as the user gave it.
using CatalogPrice =
    std::function<Result<double>(const std::string& price, const std::string& site, bool anchor)>;

/// Refuses what read_links() would refuse of the texts alone, without reading tokens and catalogs: each
/// value, and options that exclude each other. Others may still be added. An empty text was not given.
Status check_links(const LinkOptions& given, Spelling spelling, const CatalogPrice& catalog_price = {});

/// What a program says of itself: neither keys of the run file nor options of its peer.
struct ProgramSettings {
  std::string run_file;
  std::uint64_t grain = 1;    ///< samples that it computes at once, at the beginning; 0: not known
  std::uint64_t threads = 1;  ///< for sums, updates and digests, at most
  std::uint64_t begun = 0;    ///< rounds that it did in a run before; they count for training.rounds
  std::string gpu, gpu_uuid;  ///< Options

  /// Stores a value as a program writes it. False: the key is another's.
  Result<bool> take(std::string_view key, const std::string& value);
};

/// The complaint about a name that is no setting, with the nearest one.
Error unknown_setting(const std::string& name);

/// What the texts mean; session.run is left as it is. Reads token files. The error is one message for the
/// user that names the option, its value and what was expected. catalog_price: of fronts that have catalogs.
Result<Options> read_links(const LinkOptions& given, Spelling spelling,
                           const CatalogPrice& catalog_price = {});

/// If the texts do not say whether the run had begun before, its event logs in `out` decide. session.run must
/// be set; parameters: floats of the model.
void look_at_past(Options& options, std::uint64_t parameters);

/// Decides where the peers of the run meet: as the run file says, else beside the copies of its checkpoints.
/// A peer that would begin the run looks there first, for some seconds at most, and joins those that answer.
/// After look_at_past().
void look_for_peers(Options& options, std::uint64_t parameters);

/// Decides where checkpoints go and how often: as the run file says, else in `out`, in the run folder, or in
/// the working folder; there in a folder for this run alone, with a warning if it begins beside another run
/// that has not ended. parameters: as above.
void place_checkpoints(Options& options, std::uint64_t parameters);

/// "checkpoints in logs/checkpoints/1a2b3c4d, every 5 min".
std::string checkpoint_words(const train::CheckpointOptions& checkpoint);

}  // namespace tw::peer
