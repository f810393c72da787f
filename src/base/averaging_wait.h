// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How long work takes beside averaging where averaging costs little: the one law of leaders that choose the
/// samples of a round (swarm/leases/batch_choice.h) and of predictions before a run (plan/advise/).
namespace tw {

/// Wait of a peer for averaging, as a part of the time, that is accepted where nobody computes meanwhile.
inline constexpr double kAcceptedWait = 0.05;
/// With overlap: the time of the work is so many times that of the averaging, since measured times vary.
inline constexpr double kHidden = 1.25;

/// Seconds of work for each second of averaging: work / (work + averaging) is 95 %, or all is hidden.
constexpr double work_for_averaging(bool overlap) {
  return overlap ? kHidden : (1 - kAcceptedWait) / kAcceptedWait;
}

}  // namespace tw
