// SPDX-License-Identifier: Apache-2.0
#include "spot/sources.h"

#include "spot/aws.h"
#include "spot/azure.h"
#include "spot/gcp.h"
#include "spot/notice_file.h"

namespace tw::spot {
namespace {

/// All Azure machines have it: learn.microsoft.com, "instance metadata service", detection.
constexpr const char* kAzureAssetTag = "7783-7084-3265-9085-8269-3286-77";

std::optional<Source> asked(const NoticeOptions& options, const world::MachineSigns& signs) {
  switch (options.ask) {
    case NoticeOptions::Ask::automatic:
      return provider_of(signs);
    case NoticeOptions::Ask::aws:
      return Source::aws;
    case NoticeOptions::Ask::gcp:
      return Source::gcp;
    case NoticeOptions::Ask::azure:
      return Source::azure;
    case NoticeOptions::Ask::file:
      return Source::file;
    case NoticeOptions::Ask::signal:
    case NoticeOptions::Ask::none:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Source> provider_of(const world::MachineSigns& signs) {
  if (signs.sys_vendor == "Amazon EC2") return Source::aws;
  if (signs.product_name == "Google Compute Engine") return Source::gcp;
  if (signs.chassis_asset_tag == kAzureAssetTag) return Source::azure;
  return std::nullopt;
}

std::vector<std::unique_ptr<NoticeSource>> sources_of(const NoticeOptions& options,
                                                      const world::MachineSigns& signs) {
  std::vector<std::unique_ptr<NoticeSource>> sources;
  const std::optional<Source> source = asked(options, signs);
  if (source == Source::aws) sources.push_back(std::make_unique<Aws>());
  if (source == Source::gcp) {
    sources.push_back(std::make_unique<Gcp>(Gcp::Topic::preempted));
    sources.push_back(std::make_unique<Gcp>(Gcp::Topic::maintenance));
  }
  if (source == Source::azure) sources.push_back(std::make_unique<Azure>());
  if (source == Source::file) sources.push_back(std::make_unique<NoticeFile>(options.path, options.grace));
  return sources;
}

Signals::Options signals_of(const NoticeOptions& options, const world::MachineSigns& signs) {
  Signals::Options signals;
  if (signs.kubernetes) signals.source = Source::kubernetes;
  if (signs.slurm) signals.source = Source::slurm;
  signals.grace = options.grace;
  if (options.ask == NoticeOptions::Ask::none) signals.grace = std::nullopt;
  return signals;
}

}  // namespace tw::spot
