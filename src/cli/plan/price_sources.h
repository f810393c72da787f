// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "market/network.h"
#include "market/offer.h"

namespace CLI {
class App;
}

/// The offers that the commands of the planner choose from.
namespace tw::cli {

struct MarketArguments {
  std::vector<std::string> offers;  ///< files of one's own offers and hosts
  std::string catalog;              ///< a folder with CLOUD/vms.csv, or "built-in"; empty: what is there
};

void describe_market(CLI::App& command, MarketArguments& arguments);

struct PriceSources {
  std::vector<market::Offer> offers;
  std::vector<std::string> sources;   ///< "FILE: 12 offers of 3 days ago"
  std::vector<std::string> left_out;  ///< rows of catalogs that are no offers, and why
};

/// Own offers; for each cloud the newest of its catalogs in ~/.sky/catalogs and in catalog_folder(); and the
/// built-in prices for other providers.
Result<PriceSources> price_sources(const MarketArguments& arguments);

/// The built-in network, and before it the rows of a file (--profile), unless its name is empty.
Result<market::NetworkProfile> network_at_hand(const std::string& file);

/// Beside a cloud's vms.csv: the date of its prices, which the table itself does not name.
inline constexpr const char* kAsOfFile = "as_of";

/// Folder of the tables of `tw catalog update`: $XDG_CACHE_HOME/tradewind/catalogs, or in ~/.cache.
std::string catalog_folder();

/// The text of a file; an error names it as the option's value.
Result<std::string> read_text(const std::string& option, const std::string& file);

}  // namespace tw::cli
