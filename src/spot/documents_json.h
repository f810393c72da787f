// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

/// Answers of metadata services, read from their JSON. Missing fields are empty; an error says what does not
/// fit.
namespace tw::spot {

/// AWS: spot/instance-action, and (time only) events/recommendations/rebalance.
struct InstanceAction {
  std::string action;  ///< terminate, stop, hibernate
  std::string time;    ///< "2017-09-18T08:22:00Z"

  bool operator==(const InstanceAction&) const = default;
};

Result<InstanceAction> read_instance_action(const std::string& json);

/// AWS: events/maintenance/scheduled.
struct AwsEvent {
  std::string
      code;  ///< instance-reboot, system-reboot, system-maintenance, instance-retirement, instance-stop
  std::string not_before;  ///< "21 Jan 2019 09:00:43 GMT"
  std::string state;       ///< active, completed, canceled

  bool operator==(const AwsEvent&) const = default;
};

Result<std::vector<AwsEvent>> read_aws_events(const std::string& json);

/// Azure: Scheduled Events.
struct AzureEvent {
  std::string id;
  std::string type;                    ///< Preempt, Terminate, Reboot, Redeploy, Freeze
  std::string status;                  ///< Scheduled, Started
  std::string not_before;              ///< empty once it has started
  std::vector<std::string> resources;  ///< names of machines
  double duration_s = -1;              ///< of a freeze; -1: not known

  bool operator==(const AzureEvent&) const = default;
};

Result<std::vector<AzureEvent>> read_azure_events(const std::string& json);

/// The body of the request that lets an event begin now.
std::string azure_approval(const std::string& event_id);

/// An object of a notice file: {"kind": "preempt", "seconds": 30, "text": "..."}.
struct FileNotice {
  std::string kind;
  std::optional<double> seconds{};
  std::string text{};
};

Result<FileNotice> read_file_notice(const std::string& json);

}  // namespace tw::spot
