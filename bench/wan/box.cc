// SPDX-License-Identifier: Apache-2.0
#include "wan/box.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <ctime>
#include <sstream>

#include "base/text/field_table.h"
#include "wan/status_json.h"
#include "wan/topology_fields.h"

namespace tw::wan {
namespace {

using namespace std::chrono_literals;

/// Keys of what epoll watches; hosts come first, clients are kClients + their descriptor.
constexpr std::uint64_t kListener = 1 << 20, kSignals = kListener + 1, kClients = kListener + 2;
/// Frames from one host before the others have their turn.
constexpr int kFramesAtOnce = 64;
/// A frame of at least this length keeps its read buffer; a shorter one is copied.
constexpr std::size_t kWorthABuffer = 16384;

Instant read_clock() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return Instant(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

Duration cpu_used() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

Frame new_frame(std::size_t size) {
  return {.bytes = std::unique_ptr<std::byte[]>(new std::byte[size]), .size = size};
}

/// Before whatever the hosts run, for a late packet is a wrong one; wakes to the microsecond; keeps its
/// memory.
void take_precedence() {
  const sched_param parameter{.sched_priority = 1};
  if (sched_setscheduler(0, SCHED_FIFO, &parameter) != 0) setpriority(PRIO_PROCESS, 0, -20);
  prctl(PR_SET_TIMERSLACK, 1);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
}

}  // namespace

Box::Box(Topology topology, Testbed testbed, Fd listener)
    : topology_(std::move(topology)),
      tuns_(std::move(testbed.tuns)),
      listener_(std::move(listener)),
      fabric_(topology_, testbed.kernel_nics, /*seed=*/1),
      spare_(new_frame(kLargestRead)),
      carried_(topology_.links.size()),
      bit_s_(topology_.links.size()),
      began_(read_clock()),
      second_began_(began_),
      cpu_then_(cpu_used()) {}

Status Box::run() {
  if (auto watching = watch(); !watching) return watching;
  take_precedence();
  while (!ends_) {
    wait();
    fabric_.step(read_clock() + 50us, [this](std::size_t host, const Frame& frame, Instant due) {
      tuns_[host].write(frame.span());
      load_.delivered(read_clock() - due);
    });
    if (const Instant now = read_clock(); now - second_began_ >= 1s) end_second(now);
  }
  return tw::Unit{};
}

Status Box::watch() {
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  sigprocmask(SIG_BLOCK, &ending, nullptr);
  signals_ = Fd(signalfd(-1, &ending, SFD_NONBLOCK | SFD_CLOEXEC));
  epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  for (std::size_t host = 0; host < tuns_.size(); ++host)
    if (auto watching = watch(tuns_[host].fd(), host); !watching) return watching;
  if (auto watching = watch(listener_.get(), kListener); !watching) return watching;
  return watch(signals_.get(), kSignals);
}

Status Box::watch(int fd, std::uint64_t key) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = key;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return os_error("epoll");
  return tw::Unit{};
}

void Box::wait() {
  const Instant until = std::min(fabric_.next_step(), second_began_ + 1s);
  const Duration left = std::max(until - read_clock(), Duration{});
  const timespec timeout{.tv_sec = left / 1s, .tv_nsec = (left % 1s).count()};
  std::array<epoll_event, 64> events{};
  // The call of the kernel: glibc has a function for it from 2.35 on.
  const long ready =
      syscall(SYS_epoll_pwait2, epoll_.get(), events.data(), events.size(), &timeout, nullptr, 0);
  for (long i = 0; i < ready; ++i) attend(events[static_cast<std::size_t>(i)].data.u64);
}

void Box::attend(std::uint64_t key) {
  if (key < tuns_.size()) return read_host(key);
  if (key == kSignals) {
    ends_ = true;
  } else if (key == kListener) {
    accept_client();
  } else if (const auto client = clients_.find(key); client != clients_.end()) {
    if (!client->second.read([this](const std::string& request) { return answer(request); }))
      clients_.erase(client);
  }
}

void Box::read_host(std::size_t host) {
  const Instant now = read_clock();
  for (int i = 0; i < kFramesAtOnce; ++i) {
    const std::size_t size = tuns_[host].read({spare_.bytes.get(), kLargestRead});
    if (size == 0) return;
    const auto envelope = read_envelope({spare_.bytes.get(), size});
    if (!envelope) continue;
    Frame frame;
    if (size >= kWorthABuffer) {
      frame = std::exchange(spare_, new_frame(kLargestRead));
      frame.size = size;
    } else {
      frame = new_frame(size);
      std::memcpy(frame.bytes.get(), spare_.bytes.get(), size);
    }
    if (fabric_.push(host, *envelope, frame, now)) wire_bytes_ += envelope->wire_bytes;
  }
}

void Box::accept_client() {
  Client client(listener_);
  if (!client.valid()) return;
  const std::uint64_t key = kClients + static_cast<std::uint64_t>(client.fd());
  if (watch(client.fd(), key)) clients_.insert_or_assign(key, std::move(client));
}

void Box::end_second(Instant now) {
  const std::size_t sites = topology_.sites.size();
  for (std::size_t pair = 0; pair < carried_.size(); ++pair) {
    const std::uint64_t bytes = fabric_.traffic(pair / sites, pair % sites, now).bytes;
    bit_s_[pair] = static_cast<double>(bytes - carried_[pair]) * 8 / to_seconds(now - second_began_);
    carried_[pair] = bytes;
  }
  std::uint64_t unread = 0;
  for (const Tun& tun : tuns_) unread += tun.unread();
  const Duration cpu = cpu_used();
  load_.close(cpu - cpu_then_, now - second_began_, unread - std::exchange(unread_, unread));
  cpu_then_ = cpu;
  second_began_ = now;
}

Result<std::string> Box::answer(const std::string& request) {
  if (request == "hello") return std::string();
  if (request == "status") return status();
  if (request.starts_with("set ")) return set_link(request);
  if (request != "down") return Error{fmt::format("{}: no such request", request)};
  ends_ = true;
  return std::string();
}

/// "set FROM TO KEY VALUE"
Result<std::string> Box::set_link(const std::string& request) {
  std::istringstream words(request);
  std::string verb, from_name, to_name, key, value;
  words >> verb >> from_name >> to_name >> key >> value;
  const auto from = find_site(from_name), to = find_site(to_name);
  if (!from) return from.error();
  if (!to) return to.error();
  const Field<Link>* field = find_field(link_fields(), "links", key);
  Link link = fabric_.link(from.value(), to.value());
  if (field == nullptr)
    return Error{fmt::format("{}: a link has bandwidth, delay, jitter, loss, outage", key)};
  if (!field->assign(value, link))
    return Error{fmt::format("{}: expected {}, found \"{}\"", key, field->expected, value)};
  // A burst must not be lost as a whole.
  for (const Tun& tun : tuns_)
    if (auto done = link.loss > 0 ? tun.set_offloads(false) : Status(tw::Unit{}); !done) return done.error();
  fabric_.change(from.value(), to.value(), link, read_clock());
  return std::string();
}

Result<std::size_t> Box::find_site(const std::string& name) const {
  for (std::size_t site = 0; site < topology_.sites.size(); ++site)
    if (topology_.sites[site].name == name) return site;
  return Error{fmt::format("{}: {} has no such site", name, topology_.name)};
}

std::string Box::status() const {
  const Instant now = read_clock();
  const std::size_t sites = topology_.sites.size();
  BoxState state{.pid = getpid(),
                 .up_s = to_seconds(now - began_),
                 .load = load_,
                 .bit_s = bit_s_,
                 .wire_bytes = wire_bytes_,
                 .cpu_s = to_seconds(cpu_used())};
  for (std::size_t pair = 0; pair < topology_.links.size(); ++pair) {
    state.links.push_back(fabric_.link(pair / sites, pair % sites));
    state.traffic.push_back(fabric_.traffic(pair / sites, pair % sites, now));
  }
  for (std::size_t host = 0; host < tuns_.size(); ++host)
    state.hosts.push_back(fabric_.host_queued(host, now));
  for (std::size_t site = 0; site < sites; ++site) state.sites.push_back(fabric_.site_queued(site, now));
  return status_json(topology_, state);
}

}  // namespace tw::wan
