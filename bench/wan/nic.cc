// SPDX-License-Identifier: Apache-2.0
#include "wan/nic.h"

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "wan/netns.h"

namespace tw::wan {
namespace {

/// A burst must hold the longest frame with all its packets' headers, or the kernel cuts it up; beyond that,
/// what a late timer needs.
constexpr double kSmallestBurstBytes = 72 * 1024;
constexpr double kBurstSeconds = 0.0005;
/// For senders that do not hold back, such as UDP.
constexpr std::uint32_t kQueueBytes = 16 << 20;

/// A netlink message under construction.
class Message {
 public:
  template <class T>
  explicit Message(const T& header) {
    bytes_.resize(NLMSG_HDRLEN);
    append(&header, sizeof header);
  }

  std::size_t begin(std::uint16_t type) {
    const std::size_t at = bytes_.size();
    const rtattr head{.rta_len = 0, .rta_type = type};
    append(&head, sizeof head);
    return at;
  }

  void end(std::size_t at) {
    const auto length = static_cast<std::uint16_t>(bytes_.size() - at);
    std::memcpy(bytes_.data() + at, &length, sizeof length);
    bytes_.resize(NLMSG_ALIGN(bytes_.size()));
  }

  void add(std::uint16_t type, const void* data, std::size_t size) {
    const std::size_t at = begin(type);
    append(data, size);
    end(at);
  }

  const std::vector<char>& finish(std::uint16_t type, std::uint16_t flags) {
    const nlmsghdr header{.nlmsg_len = static_cast<std::uint32_t>(bytes_.size()),
                          .nlmsg_type = type,
                          .nlmsg_flags = static_cast<std::uint16_t>(flags | NLM_F_REQUEST | NLM_F_ACK),
                          .nlmsg_seq = 1,
                          .nlmsg_pid = 0};
    std::memcpy(bytes_.data(), &header, sizeof header);
    return bytes_;
  }

 private:
  void append(const void* data, std::size_t size) {
    const auto* first = static_cast<const char*>(data);
    bytes_.insert(bytes_.end(), first, first + size);
  }

  std::vector<char> bytes_;
};

/// errno of the kernel's answer, 0 when it agreed.
int converse(const std::vector<char>& message) {
  const Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (send(socket.get(), message.data(), message.size(), 0) < 0) return errno;

  struct {
    nlmsghdr header;
    nlmsgerr error;
  } answer{};

  if (recv(socket.get(), &answer, sizeof answer, MSG_TRUNC) < 0) return errno;
  return answer.header.nlmsg_type == NLMSG_ERROR ? -answer.error.error : EPROTO;
}

}  // namespace

Status limit_nic(double bit_s) {
  constexpr std::string_view kKind = "tbf";
  const auto bytes_s = static_cast<std::uint64_t>(bit_s / 8);
  const auto burst =
      static_cast<std::uint32_t>(std::max(kSmallestBurstBytes, kBurstSeconds * static_cast<double>(bytes_s)));
  tc_tbf_qopt options{};
  options.rate.rate = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes_s, UINT32_MAX));
  options.limit = kQueueBytes;
  Message message(tcmsg{.tcm_family = AF_UNSPEC,
                        .tcm_ifindex = static_cast<int>(if_nametoindex("wan0")),
                        .tcm_handle = 0x10000,
                        .tcm_parent = TC_H_ROOT});
  message.add(TCA_KIND, kKind.data(), kKind.size() + 1);
  const std::size_t nest = message.begin(TCA_OPTIONS);
  message.add(TCA_TBF_PARMS, &options, sizeof options);
  message.add(TCA_TBF_BURST, &burst, sizeof burst);
  if (bytes_s > UINT32_MAX) message.add(TCA_TBF_RATE64, &bytes_s, sizeof bytes_s);
  message.end(nest);
  errno = converse(message.finish(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE));
  if (errno != 0) return os_error("rate of wan0");
  return tw::Unit{};
}

}  // namespace tw::wan
