// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/ticks.h"
#include "plan/advise/recommendation.h"
#include "plan/output/label_places.h"

/// Cost against hours of a plan and of the options not chosen: plan.svg, which plan.html shows, too.
namespace tw::plan {

struct PlanPicture {
  enum class Role { chosen, other, front };

  struct Dot {
    Role role{};
    double x = 0, y = 0;     ///< pixels
    Box range;               ///< P10 to P90 of both; empty for the front
    std::string name, hint;  ///< name: empty without a label
  };

  struct Label {
    Box box;
    double x = 0, y = 0;  ///< its dot, pixels
    std::string text;
  };

  /// A limit of the job.
  struct Limit {
    double hours = 0, usd = 0;  ///< one of them; 0: the other
    std::string text;
  };

  bool logarithmic = false;  ///< both axes: as the knee of a front is defined
  Scale hours, usd;
  std::vector<Limit> limits;
  std::vector<Dot> dots;  ///< front first, the chosen one last
  std::vector<Label> labels;
  std::vector<std::string> outside;  ///< options that would squeeze all others into a corner

  static constexpr double kWidth = 860, kHeight = 520;
  static constexpr Box kFrame{76, 24, 760, 400};
};

PlanPicture picture_of(const Job& job, const Recommendation& plan);

std::string to_svg(const PlanPicture& picture);

}  // namespace tw::plan
