// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tw::host {

/// The machine in words: "AMD EPYC 7B13, 8 cores". Where its processor has no name: "8 cores". Reads one
/// file.
std::string hardware_words();

}  // namespace tw::host
