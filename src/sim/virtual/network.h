// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "sim/virtual/link_queue.h"
#include "sim/virtual/port.h"
#include "sim/virtual/process.h"
#include "sim/virtual/scheduler.h"

namespace tw::sim {

/// A path in one direction.
struct Quality {
  Duration latency = std::chrono::milliseconds(1);
  Duration jitter{};  ///< on top of the latency, uniform in [0, jitter); order is kept all the same
  double bytes_per_s = 125e6;
  /// Bulk bytes under way or not consumed yet; caps the rate at window / RTT. A larger message passes at that
  /// rate, and two of them may be under way.
  std::uint64_t window_bytes = 1 << 20;
};

/// Bandwidth of a peer over all its paths. Only for bulk messages: control messages are assumed to be few.
struct Capacity {
  double up_bytes_per_s = 125e6;
  double down_bytes_per_s = 125e6;
};

/// How a process ends. Messages under way are delivered (clean) or lost on each path by chance.
enum class Death {
  clean,   ///< the kernel sends the rest and closes the links
  abrupt,  ///< the links are reset
  silent,  ///< the machine is gone: no peer is told
};

/// All ports of one world and the paths between them: latency, jitter, bandwidth, windows, faults. A bulk
/// message takes its sender's uplink, then its path, where it may overtake another one, then its receiver's
/// downlink, each one message at a time in order of arrival. Owns the ports; must outlive the scheduler's
/// calls, and so must the processes.
class VirtualNetwork {
 public:
  VirtualNetwork(Scheduler& scheduler, std::uint64_t seed) : scheduler_(scheduler), random_(seed) {}

  VirtualNetwork(const VirtualNetwork&) = delete;
  VirtualNetwork& operator=(const VirtualNetwork&) = delete;

  /// Numbers count from 0.
  Port& attach(Process& process, Capacity capacity);

  /// The address of `former`, whose process is dead, becomes that of `successor`: a peer that dials it
  /// reaches the successor.
  void take_over(int successor, int former);

  std::string address_of(int port) const { return "peer-" + std::to_string(host(port).address) + ":7000"; }

  Port& port(int number) { return *hosts_.at(static_cast<std::size_t>(number)).port; }

  /// Takes effect at once, in both directions; paths start with Quality{}.
  void set_quality(int a, int b, const Quality& quality);
  void set_capacity(int port, Capacity capacity);

  /// A byte of the payload of a bulk message counts as `scale` bytes in all times, windows and counters.
  void set_bulk_scale(double scale) { bulk_scale_ = scale; }

  /// These ports reach only each other: messages across the border are held, new dials time out. With
  /// `close_links`, links across the border are reset at both ends.
  void isolate(const std::set<int>& ports, bool close_links = false);

  /// Messages in this direction are held, none is lost; dials between the two time out. Each hold needs its
  /// own release; on top of isolation.
  void hold(int from, int to);
  void release(int from, int to);

  /// Ends all isolation and all holds.
  void heal();

  /// Whether something sent in one direction or the other would be held.
  bool cut(int a, int b) const;

  /// The present link between the two becomes half-open: messages of either end vanish from now on, its end
  /// too, and neither end is told. A new link works. False when there is no link.
  bool black_hole(int a, int b);

  /// All frames of this port, greetings too, go through `change`: its result is sent instead (of a greeting,
  /// the first frame). An empty function ends it.
  using Change = std::function<std::vector<Frame>(const Frame&)>;
  void tamper(int port, Change change);

  /// The links between the two close at both ends at once; what is under way is lost.
  void reset(int a, int b);

  /// Ends the process, too.
  void crash(int port, Death death);

  /// Control and scaled bulk bytes, delivered or not.
  std::uint64_t bytes_sent(int from, int to) const;

  /// Bytes of the messages that the session at this port gave to links with the other one: without greetings
  /// and scale, before any tampering.
  std::uint64_t bytes_given(int from, int to) const;

  std::uint64_t control_bytes_sent(int port) const { return host(port).control_bytes; }

  /// Control and bulk messages.
  std::uint64_t messages_sent(int port) const { return host(port).messages; }

  /// Sees each control message as its session sends it.
  using Tap = std::function<void(const Frame&)>;

  void tap(Tap tap) { tap_ = std::move(tap); }

 private:
  friend class Port;

  enum class Reach { works, refuses, fails };

  struct Path {
    Path(Scheduler& scheduler, UnderWay& under_way)
        : control(scheduler, under_way), bulk(scheduler, under_way) {}

    /// What is under way never arrives.
    void lose();
    /// A bulk message has arrived.
    void delivered();
    void set_cut(bool cut);

    Quality quality;
    LinkQueue control, bulk;
    Instant control_free{}, bulk_free{};
    std::uint64_t epoch = 0;           ///< bulk messages of earlier ones count no longer
    std::uint64_t unacknowledged = 0;  ///< bulk bytes
    std::uint64_t sent = 0;            ///< bytes, delivered or not
    std::uint64_t given = 0;           ///< bytes_given()
    int undelivered = 0;               ///< bulk messages
    int holds = 0;
    std::vector<Call> byes;  ///< wait for undelivered bulk messages
  };

  struct Host {
    std::unique_ptr<Port> port;
    Capacity capacity;
    int address = 0;
    Instant up_free{}, down_free{};
    int group = 0;  ///< ports of other groups are out of reach
    bool silent = false;
    Change change;
    std::uint64_t control_bytes = 0, messages = 0;
    std::vector<std::unique_ptr<Path>> ways;  ///< by the port at the other end; none before the first use
  };

  struct Bye {
    std::uint64_t link = 0;
    world::Refusal why;
    std::optional<world::DialFailure::Kind> refused{};  ///< nothing: an open link ends
  };

  // For Port.
  std::optional<int> find(const std::string& address) const;
  Reach reach(int from, int to) const;
  Duration round_trip(int a, int b);
  std::uint64_t bulk_bytes(const Frame& frame) const;
  void count(int from, int to, std::uint64_t bytes, bool control);
  void carry(int to, Parcel parcel);
  void carry_bye(int from, int to, const Bye& bye);
  void carry_bulk(int to, Parcel parcel);
  /// When the next bulk message can be accepted; kNever while the window is full. Bytes that vanished in a
  /// black hole stay in it.
  Instant bulk_room(int from, int to, std::uint64_t swallowed);

  Path& path(int from, int to);
  const Path* known_path(int from, int to) const;  ///< null before its first use

  Host& host(int number) { return hosts_.at(static_cast<std::size_t>(number)); }

  const Host& host(int number) const { return hosts_.at(static_cast<std::size_t>(number)); }

  void deliver(int to, Parcel parcel);
  void bulk_arrived(int to, std::uint64_t bytes, std::uint64_t in_window, Parcel parcel);
  void hand_over_bulk(int to, std::uint64_t epoch, std::uint64_t in_window, const Parcel& parcel);
  void acknowledge(int from, int to, std::uint64_t bytes);
  bool held(int from, int to) const;
  void update_cuts();
  Instant arrival(const Path& path, Instant left);

  Scheduler& scheduler_;
  Prng random_;
  UnderWay under_way_;
  std::vector<Host> hosts_;
  std::vector<int> tenants_;  ///< by address: the port that has it
  std::uint64_t links_ = 0;
  int groups_ = 0;
  double bulk_scale_ = 1;
  Tap tap_;
};

}  // namespace tw::sim
