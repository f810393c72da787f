// SPDX-License-Identifier: Apache-2.0
#include "peer/peer_log.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/result.h"
#include "host/files_disk.h"
#include "host/system/cpu_time.h"

namespace tw::peer {
namespace {

bool are_one(const std::string& folder, const std::string& other) {
  std::error_code none;
  return std::filesystem::weakly_canonical(folder, none) == std::filesystem::weakly_canonical(other, none);
}

}  // namespace

PeerLog::PeerLog(host::Loop& loop, Warn warn, LogUpload::Failed failed)
    : loop_(loop), warn_(std::move(warn)), failed_(std::move(failed)) {}

Status PeerLog::open(const Options& options) {
  if (!options.gpu_uuid.empty()) gpu_.emplace(options.gpu_uuid);
  if (options.out.empty()) return Unit{};
  if (Status made = host::DiskFiles().make_folder(options.out); !made) return made;
  const PeerId self = options.session.self;
  const std::string path = options.out + "/" + monitor::event_log_name(self);
  TW_TRY(auto log, monitor::JsonEventLog::open(path, self, loop_, options.log_limits));
  log_ = std::move(log);
  const train::CheckpointOptions& checkpoint = options.session.run.checkpoint;
  if (checkpoint.to.empty() || !checkpoint.logs) return Unit{};
  const std::string copies = checkpoint.to + "/logs";
  if (!are_one(copies, options.out)) upload_.emplace(loop_, path, copies, failed_);
  return Unit{};
}

void PeerLog::emit(const world::Event& event) {
  const Instant before = loop_.now();
  // A session that was cut short may still have something to say after the end.
  if (log_ && (!finished_ || event.phase() == world::Phase::evaluate)) log_->emit(event);
  wrote_ += loop_.now() - before;
  const auto* saved = event.as<event::Checkpoint>();
  const auto* copied = event.as<event::Copy>();
  const bool is_new =
      (saved && saved->cause == event::Cause::none) || (copied && copied->cause == event::Cause::none);
  if (upload_ && is_new) upload_->hurry();
}

event::Use PeerLog::use(const host::LinkBytes& links) {
  event::Use use{.cpu_s = host::cpu_seconds(),
                 .kernel_s = host::kernel_seconds(),
                 .peak_memory = static_cast<std::uint64_t>(host::peak_memory_bytes())};
  if (const std::optional<host::GpuUse> gpu = gpu_ ? gpu_->take() : std::nullopt) {
    use.gpu_busy = gpu->busy;
    use.gpu_memory = gpu->memory;
    use.gpu_memory_total = gpu->memory_total;
  }
  use.queued_s = queue_time_.seconds(loop_.now());
  use.disk_s = to_seconds(wrote_);
  use.bytes_sent = links.sent;
  use.bytes_received = links.received;
  return use;
}

void PeerLog::look() {
  if (const std::string why = gpu_ ? gpu_->take_failure() : ""; !why.empty())
    warn_(
        fmt::format("the use of the GPU is not shown: {}; in a container, NVIDIA_DRIVER_CAPABILITIES needs "
                    "utility",
                    why));
  warn_of_log();
  if (upload_) upload_->look();
}

void PeerLog::warn_of_log() {
  if (!log_) return;
  if (const std::string removal = log_->take_removal(); !removal.empty()) warn_(removal);
  if (const auto line = watch_.line(log_->trouble())) warn_(*line);
}

void PeerLog::finish(const std::function<bool()>& cut_short) {
  if (const std::string removal = log_ ? log_->take_removal() : ""; !removal.empty()) warn_(removal);
  if (log_ && log_->trouble())
    warn_(fmt::format("{}; the last {} events are not in it", log_->trouble()->message,
                      log_->trouble()->missing));
  finished_ = true;
  if (!upload_) return;
  if (const Status copied = upload_->finish(cut_short); !copied) warn_(copied.error().message);
}

}  // namespace tw::peer
