// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "world/store.h"

namespace tw::host {

/// Files of this machine as objects: a path, or file:///PATH. The version is made of time and size, like the
/// ETags of web servers; a copy has the same version if it keeps the time (cp -p, rsync -a). Reads on the
/// calling thread.
class FileStore final : public world::Store {
 public:
  void read(const world::Extent& extent, Read done) override;
  void look(const std::string& object, Looked done) override;
};

}  // namespace tw::host
