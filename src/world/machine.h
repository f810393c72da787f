// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tw::world {

/// Signs of the cloud that a machine belongs to, from the machine and its surroundings. Firmware texts are
/// empty if there are none.
struct MachineSigns {
  std::string sys_vendor{};         ///< "Amazon EC2"
  std::string product_name{};       ///< "Google Compute Engine"
  std::string chassis_asset_tag{};  ///< "7783-7084-3265-9085-8269-3286-77": Azure
  bool kubernetes = false;          ///< a pod
  bool slurm = false;               ///< a job
};

}  // namespace tw::world
