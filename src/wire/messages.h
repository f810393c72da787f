// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>

#include "wire/bulk_messages.h"
#include "wire/checkpoint_messages.h"
#include "wire/failure_messages.h"
#include "wire/status.h"
#include "wire/swarm_messages.h"

namespace tw::wire {

/// All messages between peers. In each struct, `fields` lists what crosses the wire, once for both
/// directions; payloads travel beside the head (base/blob.h, Frame) and are not copied. The position in this
/// list is the type byte.
using Message = std::variant<Hello, Peers, Heartbeat, Progress, Lease, Recall, Plan, Vote, Prepare, Promise,
                             Commit, StallReport, HandOver, Entrust, Scatter, Gather, EntrustedSum,
                             BandwidthReport, ObjectAsk, ObjectOffer, ObjectGone, ChunkAsk, Chunk, SyncDone,
                             Padding, Status, Failures, Stop, AskCheckpoint, HeldCheckpoint>;

}  // namespace tw::wire
