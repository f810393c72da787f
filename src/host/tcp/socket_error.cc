// SPDX-License-Identifier: Apache-2.0
#include "host/tcp/socket_error.h"

#include <asio/error.hpp>
#include <cctype>
#include <cerrno>

#include "base/cause_text.h"

namespace tw::host {

std::string in_words(const std::error_code& error) {
  if (error == asio::error::eof) return "connection closed";
  if (error == asio::error::connection_reset || error == asio::error::broken_pipe) return "connection reset";
  if (error == asio::error::host_not_found || error == asio::error::host_not_found_try_again) {
    return "no such host is known";
  }
  // A code of asio equals its own conditions alone.
  std::string words = error == asio::error::no_descriptors ? cause_text(EMFILE) : cause_text(error);
  if (!words.empty()) words[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(words[0])));
  return words;
}

}  // namespace tw::host
