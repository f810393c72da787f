// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "wire/messages.h"

namespace tw::wire {

/// A message that a step machine wants to send. Control messages only; bulk ones are pulled.
struct Envelope {
  PeerId to;
  Message message;
};

using Outbox = std::vector<Envelope>;

}  // namespace tw::wire
