// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/commands.h"
#include "cli/watch/doctor_mode.h"
#include "host/identity/tls.h"
#include "market/site.h"
#include "measure/doctor/findings.h"
#include "wire/token.h"

namespace tw::cli {

/// The checks of `tw doctor` on other machines of the run.
class DoctorNetwork {
 public:
  struct Places {
    market::Site own;                  ///< provider empty: not known
    std::vector<market::Site> others;  ///< of the plan
    std::optional<std::uint64_t> peers;
  };

  DoctorNetwork(const DoctorArguments& arguments, std::optional<wire::Token> token, Places places);

  std::optional<std::uint64_t> peers() const { return places_.peers; }

  /// Token, clock, each address, bandwidth, door. Dials; takes seconds.
  std::vector<measure::Finding> look();

  /// Which mode the links want that look() has measured (judge_mode).
  std::optional<measure::Finding> look_at_mode(const plan::ModelProfile& model, double samples) const;

 private:
  measure::Finding look_at_token();
  std::vector<std::string> addresses() const;
  std::optional<double> assumed_mbit_s(const market::Site& there) const;
  market::Site own_site() const;

  const DoctorArguments& arguments_;
  std::optional<wire::Token> token_;
  Places places_;
  std::unique_ptr<host::Tls> tls_;
  std::vector<MeasuredLink> links_;
  double token_begins_in_s_ = 0;
};

/// token: a token, @FILE, or empty. The arguments outlive it. Errors name the option.
Result<DoctorNetwork> open_doctor_network(const DoctorArguments& arguments, const std::string& token);

/// Asks the cloud of this machine, if any, for notices: 5 s at most.
measure::Finding look_at_notices();

}  // namespace tw::cli
