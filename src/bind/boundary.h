// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "bind/tradewind.h"
#include "host/system/thrown.h"

/// What every function of the C interface does with its errors and texts.
namespace tw::bind {

/// The calling thread's last error, until its next one.
const std::string& last_error();

/// Sets the last error, made safe for a terminal, and returns TW_MISUSE or TW_FAILED.
int misuse(std::string_view why);
int failed(std::string_view why);

/// For tw_free.
char* copy_of(const std::string& text);

/// No exception crosses the boundary.
template <class Call>
int without_throwing(const Call& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return failed("out of memory");
  } catch (const std::exception& thrown) {
    return failed(host::words_of(thrown));
  } catch (...) {
    return failed("exception of an unknown type");
  }
}

}  // namespace tw::bind
