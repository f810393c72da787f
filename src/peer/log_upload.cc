// SPDX-License-Identifier: Apache-2.0
#include "peer/log_upload.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace tw::peer {
namespace {

/// What fails is copied a minute later: better than an end of the process that waits for a dead store.
constexpr host::S3Files::Effort kLogEffort{
    .attempts = 2, .patience = std::chrono::seconds(10), .silence = std::chrono::seconds(5)};

}  // namespace

LogUpload::LogUpload(host::Loop& loop, const std::string& log, const std::string& folder, Failed failed)
    : loop_(loop),
      folder_(folder),
      failed_(std::move(failed)),
      files_(kLogEffort),
      copy_(files_, log, {folder, host::is_s3(folder)}),
      began_(loop.now()),
      due_(loop.now() + kApart),
      thread_(loop, [this](const std::string& exception) { copied(Error{exception}); }) {}

void LogUpload::look() {
  const Instant now = loop_.now();
  if (under_way_ || now < due_) return;
  under_way_ = true;
  began_ = now;
  due_ = now + kEvery;
  const auto result = std::make_shared<Status>(Unit{});  // owners: both halves of the job
  thread_.submit({[this, result] { *result = copy_.copy(); }, [this, result](Duration) { copied(*result); }});
}

void LogUpload::hurry() { due_ = std::min(due_, std::max(loop_.now(), began_ + kApart)); }

void LogUpload::copied(const Status& status) {
  under_way_ = false;
  const bool is_news = !status && last_;
  last_ = status;
  if (is_news)
    failed_(fmt::format("the event log is not copied to {} (tried again every minute): {}", folder_,
                        status.error().message));
}

Status LogUpload::finish(const std::function<bool()>& cut_short) {
  failed_ = [](const std::string&) {};  // only the caller gets it
  due_ = loop_.now();
  bool done = false;
  const auto is_over = [&] {
    if (cut_short()) return true;
    look();
    done = !under_way_;
    return done;
  };
  loop_.run_until(is_over, kLastCopy);
  copy_.stop();
  if (!done) return Error{fmt::format("the end of the event log is not in {}", folder_)};
  if (last_) return Unit{};
  return Error{fmt::format("the end of the event log is not in {}: {}", folder_, last_.error().message)};
}

}  // namespace tw::peer
