// SPDX-License-Identifier: Apache-2.0
#include "host/system/machine_signs.h"

#include <cstdlib>
#include <fstream>
#include <string>

namespace tw::host {
namespace {

std::string firmware_text(const char* name) {
  std::ifstream file(std::string("/sys/class/dmi/id/") + name);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

world::MachineSigns read_machine_signs() {
  return {.sys_vendor = firmware_text("sys_vendor"),
          .product_name = firmware_text("product_name"),
          .chassis_asset_tag = firmware_text("chassis_asset_tag"),
          .kubernetes = std::getenv("KUBERNETES_SERVICE_HOST") != nullptr,
          .slurm = std::getenv("SLURM_JOB_ID") != nullptr};
}

}  // namespace tw::host
