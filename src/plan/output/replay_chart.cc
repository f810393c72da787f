// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/xml.h"
#include "plan/output/replay_table.h"

namespace tw::plan {
namespace {

constexpr double kLeft = 170, kWidth = 460, kTop = 40, kRow = 34, kBar = 16;

double rounded_up(double percent) {
  for (const double most : {5.0, 10.0, 20.0, 50.0, 100.0, 150.0, 200.0, 300.0, 500.0})
    if (percent <= most) return most;
  return percent;
}

}  // namespace

std::string to_svg(const ReplayTable& table) {
  double most = 0;
  for (const PolicyResult& one : table.policies) most = std::max(most, one.over.worst);
  most = rounded_up(most);
  const auto x = [&](double percent) { return kLeft + kWidth * std::max(0.0, percent) / most; };
  const double bottom = kTop + kRow * static_cast<double>(table.policies.size());
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 700 {0:.0f}\" width=\"700\" "
      "height=\"{0:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"13\">\n"
      "<rect width=\"700\" height=\"{0:.0f}\" fill=\"#fff\"/>\n"
      "<text x=\"{1:.0f}\" y=\"22\">cost over the optimum in hindsight: mean (bar), median to 90 % of the "
      "starts "
      "(box), worst (line)</text>\n",
      bottom + 40, 10.0);
  for (int tick = 0; tick <= 4; ++tick) {
    const double percent = most * tick / 4;
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.0f}\" y2=\"{2:.0f}\" stroke=\"#d5dbe0\"/>"
        "<text x=\"{0:.1f}\" y=\"{3:.0f}\" text-anchor=\"middle\" fill=\"#52606d\">+{4:.3g} %</text>\n",
        x(percent), kTop - 6, bottom, bottom + 18, percent);
  }
  double y = kTop;
  for (const PolicyResult& one : table.policies) {
    const bool live = one.name == "live";
    const std::string name = xml_escaped(one.name);
    svg += fmt::format(
        "<text x=\"{0:.0f}\" y=\"{1:.1f}\" text-anchor=\"end\"{2}>{3}</text>"
        "<rect x=\"{4:.1f}\" y=\"{5:.1f}\" width=\"{6:.1f}\" height=\"{7:.0f}\" fill=\"{8}\">"
        "<title>{3}: mean +{9:.1f} %, median +{10:.1f} %, 90 % of the starts below +{11:.1f} %, worst "
        "+{12:.1f} %"
        "</title></rect>",
        kLeft - 10, y + kBar - 3, live ? " font-weight=\"bold\"" : "", name, kLeft, y,
        x(one.over.mean) - kLeft, kBar, live ? "#d55e00" : "#6b7884", one.over.mean, one.over.median,
        one.over.p90, one.over.worst);
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"6\" fill=\"none\" stroke=\"#0072b2\"/>"
        "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#0072b2\"/>\n",
        x(one.over.median), y + kBar + 2, x(one.over.p90) - x(one.over.median), x(one.over.p90),
        x(one.over.worst), y + kBar + 5, y + kBar + 5);
    y += kRow;
  }
  return svg + "</svg>\n";
}

}  // namespace tw::plan
