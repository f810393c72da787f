// SPDX-License-Identifier: Apache-2.0
#include "plan/output/plan_picture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text/quantity.h"
#include "base/xml.h"

namespace tw::plan {
namespace {

constexpr double kRadius = 6;
constexpr double kLabelHeight = 15;
constexpr double kLetterWidth = 7.3;  ///< upper bound of the mean width of 12 pixel letters (DejaVu Sans)
/// Options beyond this many times the chosen one and the best of the front are listed below the picture.
constexpr double kFar = 8;
constexpr Box kFrame = PlanPicture::kFrame;

/// The colours of Okabe and Ito, which are distinct with any kind of colour vision.
std::string_view colour_of(PlanPicture::Role role) {
  switch (role) {
    case PlanPicture::Role::chosen:
      return "#d55e00";
    case PlanPicture::Role::other:
      return "#6b7884";
    case PlanPicture::Role::front:
      return "#0072b2";
  }
  return "#000000";
}

struct PictureLimits {
  double hours = 0, usd = 0;

  bool hold(const Option& one) const { return one.hours <= hours && one.usd <= usd; }
};

/// The front with the chosen plan in it, which the search of another goal finds: what it beats is not drawn.
std::vector<Option> drawn_front(const Recommendation& plan) {
  const auto beats = [](const Option& a, const Option& b) { return a.hours <= b.hours && a.usd <= b.usd; };
  std::vector<Option> front = plan.front;
  std::erase_if(front, [&](const Option& one) { return beats(plan.chosen, one); });
  const bool is_beaten =
      std::ranges::any_of(front, [&](const Option& one) { return beats(one, plan.chosen); });
  if (!plan.front.empty() && !is_beaten)
    front.insert(std::ranges::upper_bound(front, plan.chosen.hours, {}, &Option::hours), plan.chosen);
  return front;
}

PictureLimits picture_limits(const Recommendation& plan) {
  PictureLimits limits{plan.chosen.hours, plan.chosen.usd};
  if (!plan.front.empty()) {
    limits.hours = std::max(limits.hours, plan.front.back().hours);
    limits.usd = std::max(limits.usd, plan.front.front().usd);
  }
  return {kFar * limits.hours, kFar * limits.usd};
}

struct Reach {
  double low = std::numeric_limits<double>::infinity(), high = 0;

  void take(double value) {
    if (value > 0) low = std::min(low, value);
    high = std::max(high, value);
  }

  /// A logarithm has no place for 0 alone: what costs nothing.
  bool is_positive() const { return std::isfinite(low); }
};

struct PictureReach {
  Reach hours, usd;

  void take(const Option& one) {
    for (const double h : {one.hours, one.hours_spread.p10, one.hours_spread.p90}) hours.take(h);
    for (const double dollars : {one.usd, one.usd_spread.p10, one.usd_spread.p90}) usd.take(dollars);
  }
};

/// Ticks at 1, 2 and 5 times the powers of ten, from the last at or below the least to the first above all.
Scale logarithmic_scale(const Reach& reach) {
  Scale scale{.ticks = {}};
  for (double power = std::pow(10.0, std::floor(std::log10(reach.low)));; power *= 10) {
    for (const double tick : {power, 2 * power, 5 * power}) {
      if (tick <= reach.low) scale.ticks.clear();
      scale.ticks.push_back(tick);
      if (tick <= reach.high) continue;
      scale.low = scale.ticks.front();
      scale.high = tick;
      scale.step = std::pow(10.0, std::floor(std::log10(scale.low) + 1e-9));
      return scale;
    }
  }
}

double share_of(const PlanPicture& picture, const Scale& scale, double value) {
  if (!picture.logarithmic) return value / scale.high;
  return std::log(std::max(value, scale.low) / scale.low) / std::log(scale.high / scale.low);
}

double x_of(const PlanPicture& picture, double hours) {
  return kFrame.x + kFrame.width * share_of(picture, picture.hours, hours);
}

double y_of(const PlanPicture& picture, double usd) {
  return kFrame.y + kFrame.height * (1 - share_of(picture, picture.usd, usd));
}

/// Limits of the job that lie in the picture; the others are named below it.
void add_limits(const Job& job, PlanPicture& picture) {
  const auto add = [&](const PlanPicture::Limit& limit, double value, double high) {
    if (value <= 0) return;
    if (value <= high)
      picture.limits.push_back(limit);
    else
      picture.outside.push_back(limit.text);
  };
  add({.hours = job.deadline_h, .text = fmt::format("deadline {} h", significant(job.deadline_h, 4))},
      job.deadline_h, picture.hours.high);
  add({.usd = job.budget_usd, .text = fmt::format("budget ${}", significant(job.budget_usd, 4))},
      job.budget_usd, picture.usd.high);
}

std::string hint_of(const Option& one) {
  return fmt::format("{}: {}; {} h ({} to {}), ${:.2f} ({:.2f} to {:.2f}), {:.0f} samples/s{}{}", one.name,
                     to_string(one.peers), significant(one.hours, 3), significant(one.hours_spread.p10, 3),
                     significant(one.hours_spread.p90, 3), one.usd, one.usd_spread.p10, one.usd_spread.p90,
                     one.samples_per_s, one.verdict.empty() ? "" : "; ", one.verdict);
}

PlanPicture::Dot dot_of(const PlanPicture& picture, const Option& one, PlanPicture::Role role) {
  PlanPicture::Dot dot{.role = role,
                       .x = x_of(picture, one.hours),
                       .y = y_of(picture, one.usd),
                       .range = {},
                       .name = {},
                       .hint = hint_of(one)};
  if (role == PlanPicture::Role::front) return dot;
  const bool said = role != PlanPicture::Role::chosen || one.name == "chosen";
  dot.name = said ? one.name : "chosen: " + one.name;
  const double left = x_of(picture, one.hours_spread.p10);
  const double top = y_of(picture, one.usd_spread.p90);
  dot.range = {left, top, x_of(picture, one.hours_spread.p90) - left,
               y_of(picture, one.usd_spread.p10) - top};
  return dot;
}

void add_labels(PlanPicture& picture) {
  std::vector<LabelledPoint> points;
  std::vector<std::string> texts;
  // The chosen one, drawn last, gets its label first.
  for (auto dot = picture.dots.rbegin(); dot != picture.dots.rend(); ++dot) {
    points.push_back({dot->x, dot->y, kLetterWidth * static_cast<double>(dot->name.size()), kLabelHeight});
    texts.push_back(dot->name);
  }
  const auto boxes = place_labels(points, kFrame, kRadius);
  for (std::size_t i = 0; i < boxes.size(); ++i)
    if (boxes[i]) picture.labels.push_back({*boxes[i], points[i].x, points[i].y, texts[i]});
}

std::string text_at(double x, double y, std::string_view anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     xml_escaped(text));
}

std::string axes_of(const PlanPicture& picture) {
  const double bottom = kFrame.y + kFrame.height;
  const double right = kFrame.x + kFrame.width;
  std::string svg;
  for (const double tick : picture.hours.ticks) {
    const double x = x_of(picture, tick);
    svg += fmt::format("<path d=\"M{:.1f} {}V{}\" stroke=\"#e3e8ec\"/>\n", x, kFrame.y, bottom);
    svg += text_at(x, bottom + 18, "middle", tick_text(tick, picture.hours.step));
  }
  for (const double tick : picture.usd.ticks) {
    const double y = y_of(picture, tick);
    svg += fmt::format("<path d=\"M{} {:.1f}H{}\" stroke=\"#e3e8ec\"/>\n", kFrame.x, y, right);
    svg += text_at(kFrame.x - 8, y + 4, "end", tick_text(tick, picture.usd.step));
  }
  svg += fmt::format("<path d=\"M{0} {1}V{2}H{3}\" fill=\"none\" stroke=\"#55626f\"/>\n", kFrame.x, kFrame.y,
                     bottom, right);
  svg += text_at(kFrame.x + kFrame.width / 2, bottom + 40, "middle", "hours");
  svg += fmt::format(
      "<text x=\"16\" y=\"{0}\" transform=\"rotate(-90 16 {0})\" text-anchor=\"middle\">$ for "
      "the run</text>\n",
      kFrame.y + kFrame.height / 2);
  return svg;
}

std::string front_line(const PlanPicture& picture) {
  std::string line;
  for (const PlanPicture::Dot& dot : picture.dots) {
    if (dot.role != PlanPicture::Role::front) continue;
    line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : "L", dot.x, dot.y);
  }
  if (line.empty()) return "";
  return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"#0072b2\" stroke-opacity=\"0.5\"/>\n", line);
}

/// A dashed line across the picture.
std::string drawn(const PlanPicture& picture, const PlanPicture::Limit& limit) {
  constexpr const char* kDashed = "stroke=\"#a3333d\" stroke-dasharray=\"6 4\"";
  const double bottom = kFrame.y + kFrame.height, right = kFrame.x + kFrame.width;
  if (limit.hours > 0) {
    const double x = x_of(picture, limit.hours);
    return fmt::format("<path d=\"M{:.1f} {}V{}\" {}/>\n", x, kFrame.y, bottom, kDashed) +
           text_at(std::min(x, right - kLetterWidth * static_cast<double>(limit.text.size()) / 2),
                   kFrame.y - 6, "middle", limit.text);
  }
  const double y = y_of(picture, limit.usd);
  return fmt::format("<path d=\"M{} {:.1f}H{}\" {}/>\n", kFrame.x, y, right, kDashed) +
         text_at(right - 4, y - 5, "end", limit.text);
}

std::string drawn(const PlanPicture::Dot& dot) {
  const std::string_view colour = colour_of(dot.role);
  std::string svg;
  if (!dot.name.empty())
    svg += fmt::format(
        "<path d=\"M{:.1f} {:.1f}h{:.1f}M{:.1f} {:.1f}v{:.1f}\" stroke=\"{}\" stroke-opacity=\"0.55\"/>\n",
        dot.range.x, dot.y, dot.range.width, dot.x, dot.range.y, dot.range.height, colour);
  return svg + fmt::format(
                   "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"><title>{}</title>"
                   "</circle>\n",
                   dot.x, dot.y, dot.name.empty() ? 4 : kRadius, colour, xml_escaped(dot.hint));
}

/// A label that stands this far from its dot has a line to it, pixels.
constexpr double kNear = 2 * kRadius;

/// On a white edge, so that the bars behind it do not strike it through.
std::string drawn(const PlanPicture::Label& label) {
  const Box& box = label.box;
  const double x = std::clamp(label.x, box.x, box.x + box.width);
  const double y = std::clamp(label.y, box.y, box.y + box.height);
  std::string svg;
  if (std::hypot(x - label.x, y - label.y) > kNear)
    svg = fmt::format("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" stroke=\"#9aa5b1\"/>\n", label.x, label.y, x,
                      y);
  return svg + "<g stroke=\"white\" stroke-width=\"4\" paint-order=\"stroke\">" +
         text_at(box.x, box.y + 12, "start", label.text) + "</g>\n";
}

}  // namespace

PlanPicture picture_of(const Job& job, const Recommendation& plan) {
  const PictureLimits limits = picture_limits(plan);
  PictureReach reach;
  PlanPicture picture;
  std::vector<const Option*> others;
  for (const Option& one : plan.others) {
    if (limits.hold(one)) {
      others.push_back(&one);
    } else {
      picture.outside.push_back(
          fmt::format("{} ({} h, ${:.2f})", one.name, significant(one.hours, 3), one.usd));
    }
  }
  for (const Option& one : plan.front) {
    reach.hours.take(one.hours);
    reach.usd.take(one.usd);
  }
  for (const Option* one : others) reach.take(*one);
  reach.take(plan.chosen);
  constexpr double kNearby = 1.5;  ///< a limit as far as this beyond all options is drawn
  if (job.deadline_h <= kNearby * reach.hours.high) reach.hours.take(job.deadline_h);
  if (job.budget_usd <= kNearby * reach.usd.high) reach.usd.take(job.budget_usd);
  picture.logarithmic = job.goal == Goal::pareto && reach.hours.is_positive() && reach.usd.is_positive();
  picture.hours = picture.logarithmic ? logarithmic_scale(reach.hours) : round_scale(0, reach.hours.high, 8);
  picture.usd = picture.logarithmic ? logarithmic_scale(reach.usd) : round_scale(0, reach.usd.high, 6);
  add_limits(job, picture);
  for (const Option& one : drawn_front(plan))
    picture.dots.push_back(dot_of(picture, one, PlanPicture::Role::front));
  for (auto one = others.rbegin(); one != others.rend(); ++one)
    picture.dots.push_back(dot_of(picture, **one, PlanPicture::Role::other));
  picture.dots.push_back(dot_of(picture, plan.chosen, PlanPicture::Role::chosen));
  add_labels(picture);
  return picture;
}

std::string to_svg(const PlanPicture& picture) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"Inter, Arial, sans-serif\" font-size=\"12\" fill=\"#16202a\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n{2}{3}",
      PlanPicture::kWidth, PlanPicture::kHeight, axes_of(picture), front_line(picture));
  for (const PlanPicture::Limit& limit : picture.limits) svg += drawn(picture, limit);
  for (const PlanPicture::Dot& dot : picture.dots) svg += drawn(dot);
  for (const PlanPicture::Label& label : picture.labels) svg += drawn(label);
  std::string note = "Bars: P10 to P90. Blue: the front of time and cost.";
  if (picture.logarithmic) note += " Both axes are logarithmic.";
  if (!picture.outside.empty())
    note += fmt::format(" Outside of the picture: {}.", fmt::join(picture.outside, ", "));
  svg += text_at(kFrame.x, kFrame.y + kFrame.height + 68, "start", note);
  return svg + "</svg>\n";
}

}  // namespace tw::plan
