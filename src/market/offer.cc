// SPDX-License-Identifier: Apache-2.0
#include "market/offer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text/text.h"

namespace tw::market {
namespace {

struct ProviderFacts {
  std::string_view provider;
  double notice_s;      ///< of spot machines
  double network_gbps;  ///< of a VM of any size, to other regions or the internet
};

/// Notices: AWS EC2 "Spot Instance interruption notices" (two minutes), GCP "Spot VMs" and Azure "Spot
/// Virtual Machines" (30 s). Caps: skyplane's measurements of 2022 (5 Gbit/s out of a region of AWS below 32
/// vCPUs, 7 Gbit/s from GCP over the internet), Erben et al. 2024 sec. 3 for Lambda.
constexpr ProviderFacts kFacts[] = {
    {"aws", 120, 5},
    {"gcp", 30, 7},
    {"azure", 30, 0},
    {"lambda", 0, 3.3},
};

/// CM-DARE (ICDCS 2020), provisioning, staging and booting of a transient K80 or P100 on GCP: median 83 and
/// 92 s. Nothing is published for the others.
constexpr double kStartUpS = 90;

/// AWS counts vCPUs by the letter of the family; GPUs of G and VT machines share one limit.
std::string aws_family(const std::string& vm_type) {
  const std::string family = vm_type.substr(0, vm_type.find_first_of("0123456789"));
  if (family == "g" || family == "vt" || family == "gr") return "G and VT";
  if (family == "p") return "P";
  if (family == "c" || family == "m" || family == "r" || family == "t" || family == "d") return "standard";
  return family;
}

/// Standard_NC12s_v3: NCs_v3.
std::string azure_family(std::string vm_type) {
  if (vm_type.starts_with("Standard_")) vm_type.erase(0, 9);
  const auto digit =
      std::find_if(vm_type.begin(), vm_type.end(), [](unsigned char c) { return std::isdigit(c); });
  const auto after = std::find_if(digit, vm_type.end(), [](unsigned char c) { return !std::isdigit(c); });
  vm_type.erase(digit, after);
  return vm_type;
}

std::string quota_class_of(const Offer& offer) {
  std::string what = offer.gpu;
  if (offer.provider == "aws") what = aws_family(offer.vm_type);
  if (offer.provider == "azure")
    what = offer.purchase == Purchase::spot ? "all" : azure_family(offer.vm_type);
  if (what.empty()) what = "CPU";
  return fmt::format("{} {} {} {}", offer.provider, offer.region, what, to_string(offer.purchase));
}

}  // namespace

std::string_view to_string(Purchase purchase) {
  switch (purchase) {
    case Purchase::spot:
      return "spot";
    case Purchase::on_demand:
      return "on-demand";
    case Purchase::owned:
      return "owned";
  }
  return "";
}

std::optional<Purchase> parse_purchase(std::string_view written) {
  const std::string text = lower(written);
  for (const Purchase purchase : {Purchase::spot, Purchase::on_demand, Purchase::owned})
    if (text == to_string(purchase)) return purchase;
  return text == "on_demand" ? std::optional(Purchase::on_demand) : std::nullopt;
}

void fill_in(Offer& offer) {
  if (offer.failure_domain.empty()) offer.failure_domain = to_string(site_of(offer));
  if (offer.quota_class.empty() && offer.purchase != Purchase::owned)
    offer.quota_class = quota_class_of(offer);
  if (offer.purchase != Purchase::owned && offer.start_up_s == 0) offer.start_up_s = kStartUpS;
  for (const ProviderFacts& facts : kFacts) {
    if (facts.provider != offer.provider) continue;
    if (offer.purchase == Purchase::spot && offer.notice_s == 0) offer.notice_s = facts.notice_s;
    if (offer.network_gbps == 0) offer.network_gbps = facts.network_gbps;
  }
}

}  // namespace tw::market
