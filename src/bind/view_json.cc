// SPDX-License-Identifier: Apache-2.0
#include "bind/view_json.h"

#include <nlohmann/json.hpp>

#include "swarm/wait.h"

namespace tw::bind {
namespace {

nlohmann::ordered_json number_or_null(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

/// Empty while it computes: that is no wait.
std::string waits_for(const View& view) {
  const swarm::Wait& wait = view.session.waiting;
  if (!view.at_barrier.empty()) return view.at_barrier;
  if (wait.kind == swarm::Wait::Kind::computing) return {};
  const bool lacks_company = wait.kind == swarm::Wait::Kind::company && !view.refused.empty();
  return text_of(wait) + (lacks_company ? "; " + view.refused : std::string());
}

}  // namespace

std::string to_json(const View& view) {
  const nlohmann::ordered_json json = {{"round", view.session.round},
                                       {"samples", view.session.samples},
                                       {"totals", view.totals},
                                       {"rounds", view.session.rounds},
                                       {"target", view.target_batch_size},
                                       {"id", view.self.value},
                                       {"leader", view.session.leader.value},
                                       {"peers", view.peers},
                                       {"member", view.member},
                                       {"first", view.session.eldest},
                                       {"waiting", waits_for(view)},
                                       {"finished", view.session.finished},
                                       {"ended", view.session.ended},
                                       {"ending", name_of(view.ending)},
                                       {"failure", view.failure},
                                       {"unsaved", view.unsaved},
                                       {"differs", view.differs},
                                       {"address", view.address},
                                       {"watch", view.watch},
                                       {"loss", number_or_null(view.loss)},
                                       {"granularity", number_or_null(view.granularity)}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tw::bind
