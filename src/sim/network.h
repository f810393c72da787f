// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "sim/lane.h"
#include "sim/port.h"
#include "sim/process.h"
#include "sim/scheduler.h"

namespace tw {

/// A path in one direction.
struct Quality {
  Duration latency = std::chrono::milliseconds(1);
  Duration jitter{};  ///< on top of the latency, uniform in [0, jitter); order is kept all the same
  double bytes_per_s = 125e6;
  std::uint64_t window_bytes =
      1 << 20;  ///< bulk bytes under way or not consumed yet; caps the rate at window / RTT
};

/// What a peer's line carries over all its paths. Bulk alone: control messages are taken to be few.
struct Capacity {
  double up_bytes_per_s = 125e6;
  double down_bytes_per_s = 125e6;
};

/// How a process ends. What it sent but what has not arrived is delivered (clean) or lost on each path by
/// chance.
enum class Death {
  clean,   ///< the kernel sends the rest and closes the links
  abrupt,  ///< the links are reset
  silent,  ///< the machine is gone: nobody is told
};

/// All ports of one world and the paths between them: latency, jitter, bandwidth, windows, faults. A bulk
/// message takes its sender's uplink, then its path, then its receiver's downlink, each one message at a time
/// in order of arrival. Owns the ports; must outlive the scheduler's calls, and so must the processes.
class VirtualNetwork {
 public:
  VirtualNetwork(Scheduler& scheduler, std::uint64_t seed) : scheduler_(scheduler), random_(seed) {}

  VirtualNetwork(const VirtualNetwork&) = delete;
  VirtualNetwork& operator=(const VirtualNetwork&) = delete;

  /// Numbers count from 0.
  Port& attach(Process& process, Capacity capacity);

  static std::string address_of(int port) { return "peer-" + std::to_string(port) + ":7000"; }

  Port& port(int number) { return *hosts_.at(static_cast<std::size_t>(number)).port; }

  /// From now on, in both directions; paths start with Quality{}.
  void set_quality(int a, int b, const Quality& quality);
  void set_capacity(int port, Capacity capacity);

  /// These ports reach each other but nobody else: what crosses the border is held, new dials time out. With
  /// `close_links`, links across the border are reset at both ends.
  void isolate(const std::set<int>& ports, bool close_links = false);

  /// Ends all isolation.
  void heal();

  bool cut(int a, int b) const;

  /// The links between the two close at both ends at once; what is under way is lost.
  void reset(int a, int b);

  /// Ends the process, too.
  void crash(int port, Death death);

  void hold(int, int) {}

  void release(int, int) {}

  void black_hole(int, int) {}

  void set_bulk_scale(double) {}

  void tamper(int, std::function<std::vector<Frame>(const Frame&)>) {}

  /// Sees each control message as it is sent.
  using Tap = std::function<void(const Frame&)>;

  void tap(Tap tap) { tap_ = std::move(tap); }

 private:
  friend class Port;

  enum class Reach { works, refuses, fails };

  struct Host {
    std::unique_ptr<Port> port;
    Capacity capacity;
    Instant up_free{}, down_free{};
    int group = 0;  ///< ports of other groups are out of reach
    bool silent = false;
  };

  struct Path {
    explicit Path(Scheduler& scheduler) : control(scheduler), bulk(scheduler) {}

    Quality quality;
    Lane control, bulk;
    Instant control_free{}, bulk_free{};
    std::uint64_t epoch = 0;                 ///< bulk messages of earlier ones count no longer
    std::uint64_t unacknowledged = 0;        ///< bulk bytes
    int undelivered = 0;                     ///< bulk messages
    std::deque<std::function<void()>> byes;  ///< wait for undelivered bulk messages
  };

  struct Bye {
    std::uint64_t link = 0;
    std::string why;
    bool refused = false;
  };

  using Delivery = std::function<void(Port&)>;

  // For Port.
  std::optional<int> find(const std::string& address) const;
  Reach reach(int from, int to) const;
  Duration round_trip(int a, int b);

  std::uint64_t next_link() { return ++links_; }

  void carry(int from, int to, std::size_t bytes, Delivery delivery);
  void carry_bye(int from, int to, const Bye& bye);
  void carry_bulk(int from, int to, std::size_t bytes, Delivery delivery);
  Instant bulk_room(int from,
                    int to);  ///< when the next bulk message can be taken; kNever while the window is full

  Path& path(int from, int to);

  Host& host(int number) { return hosts_.at(static_cast<std::size_t>(number)); }

  const Host& host(int number) const { return hosts_.at(static_cast<std::size_t>(number)); }

  void deliver(int to, const Delivery& delivery);
  void bulk_arrived(int from, int to, std::size_t bytes, const Delivery& delivery);
  void bulk_delivered(Path& path);
  void acknowledge(int from, int to, std::size_t bytes);
  void lose(Path& path);
  void update_cuts();
  Instant arrival(const Path& path, Instant left);

  Scheduler& scheduler_;
  Prng random_;
  std::vector<Host> hosts_;
  std::map<std::pair<int, int>, std::unique_ptr<Path>> paths_;
  std::uint64_t links_ = 0;
  int groups_ = 0;
  Tap tap_;
};

}  // namespace tw
