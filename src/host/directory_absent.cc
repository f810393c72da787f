// SPDX-License-Identifier: Apache-2.0
// Takes the place of directory_dht.cc in a build without OpenDHT.
#include "host/directory_dht.h"

namespace tw::host {

struct DhtDirectory::Node {};

bool DhtDirectory::available() { return false; }

Result<std::unique_ptr<DhtDirectory>> DhtDirectory::open(Identity, std::uint16_t) {
  return Error{"this build lacks OpenDHT"};
}

DhtDirectory::DhtDirectory(Identity identity, std::unique_ptr<Node> node)
    : identity_(std::move(identity)), node_(std::move(node)) {}

DhtDirectory::~DhtDirectory() = default;

std::uint16_t DhtDirectory::port() const { return 0; }

Result<std::vector<std::string>> DhtDirectory::find(const Address&, Duration) {
  return std::vector<std::string>{};
}

void DhtDirectory::announce(Loop&, const std::string&) {}

}  // namespace tw::host
