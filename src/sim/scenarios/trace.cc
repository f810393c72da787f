// SPDX-License-Identifier: Apache-2.0
#include "sim/scenarios/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "base/digest.h"
#include "base/prng.h"
#include "base/text/number.h"
#include "base/text/text.h"

namespace tw::sim {
namespace {

std::vector<std::string> cells_of(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  std::vector<std::string> cells;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    cells.emplace_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return cells;
}

/// Where the columns stand; -1: not there.
struct Columns {
  int id = -1, time = -1, available = -1, event = -1, node = -1;
  int price = -1;  ///< for replays alone
  std::size_t count = 0;

  /// nullptr: no column has this name.
  int* place_of(const std::string& name) {
    if (name == "trace_id" || name == "trace") return &id;
    if (name == "t_seconds" || name == "time_s") return &time;
    if (name == "available") return &available;
    if (name == "event") return &event;
    if (name == "spot_usd_h") return &price;
    return name == "node" ? &node : nullptr;
  }

  static std::optional<Columns> of(const std::vector<std::string>& header) {
    Columns columns;
    columns.count = header.size();
    for (int i = 0; i < static_cast<int>(header.size()); ++i) {
      int* place = columns.place_of(header[static_cast<std::size_t>(i)]);
      if (place == nullptr || *place >= 0) return std::nullopt;  // given twice, maybe under two names
      *place = i;
    }
    const bool events = columns.event >= 0 && columns.node >= 0;
    if (columns.time < 0 || (columns.available >= 0) == events) return std::nullopt;
    if (events && columns.price >= 0) return std::nullopt;
    return columns;
  }
};

/// Traces that an error names.
constexpr std::size_t kShownTraces = 4;

/// Limit for a trace: three years.
constexpr double kLongest_s = 1e8;

/// Machines come and go, one row after the other.
class Fleet {
 public:
  explicit Fleet(const std::string& id) : random_(digest_of(id).low) {}

  /// What is wrong with the time; empty when it is right.
  std::string at(double seconds) {
    if (!(seconds >= 0 && seconds <= kLongest_s))
      return fmt::format("expected seconds from 0 to {:.15g}", kLongest_s);
    if (from_seconds(seconds) < now_) {
      return fmt::format("expected {:g} or later, the time of the row before", to_seconds(now_));
    }
    now_ = from_seconds(seconds);
    return {};
  }

  void set_available(int machines) {
    while (static_cast<int>(here_.size()) > machines) {
      remove(std::next(here_.begin(), static_cast<int>(random_.below(here_.size())))->first);
    }
    while (static_cast<int>(here_.size()) < machines) add("#" + std::to_string(++unnamed_));
  }

  bool add(const std::string& node) {
    if (here_.contains(node)) return false;
    if (free_.empty()) free_.push_back(slots_++);
    const auto slot = free_.begin() + static_cast<std::ptrdiff_t>(random_.below(free_.size()));
    here_[node] = {*slot, now_, now_, true};
    free_.erase(slot);
    return true;
  }

  bool remove(const std::string& node) {
    const auto found = here_.find(node);
    if (found == here_.end()) return false;
    found->second.goes = now_;
    if (found->second.goes > found->second.comes) stays_.push_back(found->second);
    free_.push_back(found->second.slot);
    here_.erase(found);
    return true;
  }

  Trace finish(const std::string& id) {
    for (auto& [node, lifetime] : here_) {
      lifetime.goes = now_;
      lifetime.taken = false;
      if (lifetime.goes > lifetime.comes) stays_.push_back(lifetime);
    }
    std::sort(stays_.begin(), stays_.end(), [](const MachineLifetime& a, const MachineLifetime& b) {
      return std::pair(a.slot, a.comes) < std::pair(b.slot, b.comes);
    });
    return {id, slots_, now_, std::move(stays_)};
  }

 private:
  Prng random_;
  Duration now_{};
  int slots_ = 0;
  int unnamed_ = 0;
  std::map<std::string, MachineLifetime> here_;  ///< by node
  std::vector<int> free_;                        ///< slots
  std::vector<MachineLifetime> stays_;
};

class TraceReading {
 public:
  TraceReading(std::string file, std::string id) : file_(std::move(file)), id_(std::move(id)) {}

  Result<std::vector<Trace>> read(std::string_view text) {
    text = without_byte_order_mark(text);
    for (int line = 1; !text.empty(); ++line) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::vector<std::string> cells = cells_of(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      if (cells.size() == 1 && cells.front().empty()) continue;
      const std::string wrong = columns_ ? take(cells) : take_header(cells);
      if (!wrong.empty()) return Error{fmt::format("{}:{}: {}", file_, line, wrong)};
    }
    return finish();
  }

 private:
  std::string take_header(const std::vector<std::string>& cells) {
    columns_ = Columns::of(cells);
    if (columns_) return {};
    return fmt::format(
        "header \"{}\": expected [trace_id,]t_seconds,available[,spot_usd_h] or "
        "[trace_id,]t_seconds,event,node, each column once",
        fmt::join(cells, ","));
  }

  std::string take(const std::vector<std::string>& cells) {
    if (cells.size() != columns_->count) {
      return fmt::format("\"{}\": expected {} columns", fmt::join(cells, ","), columns_->count);
    }
    const std::string id = columns_->id < 0 ? file_ : cell(cells, columns_->id);
    if (!wanted(id)) {
      if (others_.size() <= kShownTraces) others_.insert(id);
      return {};
    }
    Fleet& fleet = fleets_.try_emplace(id, id).first->second;
    const auto time = parse_number<double>(cell(cells, columns_->time));
    if (!time) return fmt::format("t_seconds {}: expected a number", cell(cells, columns_->time));
    const std::string late = fleet.at(*time);
    if (!late.empty()) return fmt::format("t_seconds {}: {}", cell(cells, columns_->time), late);
    return columns_->available >= 0 ? take_count(cells, fleet) : take_event(cells, fleet);
  }

  std::string take_count(const std::vector<std::string>& cells, Fleet& fleet) {
    const std::string& text = cell(cells, columns_->available);
    const auto machines = parse_number<double>(text);
    const bool in_range = machines && *machines >= 0 && *machines <= 10'000;  // not so for NaN
    if (!in_range || *machines != static_cast<int>(*machines)) {
      return fmt::format("available {}: expected a whole number from 0 to 10000", text);
    }
    fleet.set_available(static_cast<int>(*machines));
    return {};
  }

  std::string take_event(const std::vector<std::string>& cells, Fleet& fleet) {
    const std::string& event = cell(cells, columns_->event);
    const std::string& node = cell(cells, columns_->node);
    if (event != "add" && event != "remove") return fmt::format("event {}: expected add or remove", event);
    const bool right = event == "add" ? fleet.add(node) : fleet.remove(node);
    if (right) return {};
    return fmt::format("{} {}: expected a node that is {}", event, node,
                       event == "add" ? "not there yet" : "there");
  }

  Result<std::vector<Trace>> finish() {
    if (!columns_) return Error{fmt::format("{}: empty; expected a header and rows", file_)};
    const bool all = !id_.empty() && id_.back() == '*';
    if (fleets_.empty()) {
      if (others_.empty()) return Error{fmt::format("{}: expected rows after the header", file_)};
      return no_trace();
    }
    if (fleets_.size() > 1 && !all) {
      return Error{fmt::format("{}: holds {} traces; expected the id of one, such as {}", file_,
                               fleets_.size(), fleets_.begin()->first)};
    }
    std::vector<Trace> traces;
    for (auto& [id, fleet] : fleets_) traces.push_back(fleet.finish(id));
    for (const Trace& trace : traces) {
      if (trace.length > Duration{}) continue;
      return Error{fmt::format("{}: trace {}: expected a last row that marks its end", file_, trace.id)};
    }
    return traces;
  }

  Error no_trace() const {
    const bool are_all = others_.size() <= kShownTraces;
    const auto end = are_all ? others_.end() : std::prev(others_.end());
    return Error{fmt::format("{}: no trace {}; there {} {}{}", file_, id_, others_.size() == 1 ? "is" : "are",
                             fmt::join(others_.begin(), end, ", "), are_all ? "" : ", ...")};
  }

  bool wanted(const std::string& id) const {
    if (id_.empty() || columns_->id < 0) return true;
    return id_.back() == '*' ? id.starts_with(id_.substr(0, id_.size() - 1)) : id == id_;
  }

  static const std::string& cell(const std::vector<std::string>& cells, int column) {
    return cells[static_cast<std::size_t>(column)];
  }

  std::string file_, id_;
  std::optional<Columns> columns_;
  std::map<std::string, Fleet> fleets_;
  std::set<std::string> others_;  ///< some ids that were not asked for
};

Duration scaled(Duration time, double speed) { return from_seconds(to_seconds(time) / speed); }

/// The lifetimes of one machine in the window, its time shifted; the trace goes on from its beginning.
std::vector<MachineLifetime> stays_of(const Trace& trace, int machine, Duration shift,
                                      const TraceWindow& window) {
  std::vector<MachineLifetime> found;
  const Duration span = scaled(window.length, 1 / window.speed);
  const Duration first = (window.from + shift) % trace.length;
  for (Duration lap = -first; lap < span; lap += trace.length) {
    for (const MachineLifetime& lifetime : trace.lifetimes) {
      if (lifetime.slot != machine || lifetime.comes + lap >= span || lifetime.goes + lap <= Duration{})
        continue;
      MachineLifetime seen{0, scaled(std::max(lifetime.comes + lap, Duration{}), window.speed),
                           scaled(std::min(lifetime.goes + lap, span), window.speed),
                           lifetime.taken && lifetime.goes + lap <= span};
      const bool goes_on = !found.empty() && !found.back().taken && found.back().goes == seen.comes;
      if (goes_on) {
        found.back().goes = seen.goes;
        found.back().taken = seen.taken;
      } else {
        found.push_back(seen);
      }
    }
  }
  return found;
}

}  // namespace

Result<std::vector<Trace>> read_traces(const std::string& file, std::string_view text,
                                       const std::string& id) {
  return TraceReading(file, id).read(text);
}

std::vector<MachineLifetime> lifetimes_in(const std::vector<Trace>& traces, const TraceWindow& window) {
  std::vector<std::pair<const Trace*, int>> machines;
  for (const Trace& trace : traces) {
    for (int machine = 0; machine < trace.machines; ++machine) machines.emplace_back(&trace, machine);
  }
  const int count = static_cast<int>(machines.size());
  std::vector<MachineLifetime> all;
  if (count == 0) return all;
  const bool fleet = traces.size() == 1 && count >= kSmallestFleet;
  const int rounds = (window.peers + count - 1) / count;
  for (int slot = 0; slot < window.peers; ++slot) {
    const auto& [trace, machine] =
        machines[static_cast<std::size_t>(fleet ? slot * count / window.peers : slot % count)];
    const Duration shift = fleet ? Duration{} : trace->length * (slot / count) / rounds;
    for (MachineLifetime lifetime : stays_of(*trace, machine, shift, window)) {
      lifetime.slot = slot;
      all.push_back(lifetime);
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const MachineLifetime& a, const MachineLifetime& b) { return a.comes < b.comes; });
  return all;
}

}  // namespace tw::sim
