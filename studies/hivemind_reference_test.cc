// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "studies/hivemind_tables.h"

namespace tw::studies {
namespace {

struct FamilyErrors {
  double median = 0, worst = 0;
};

FamilyErrors throughput_errors(const Reference& reference, const std::string& family) {
  std::vector<double> errors;
  for (const PublishedRun& published : reference.runs) {
    if (published.group != family || !published.clean) continue;
    const HivemindRun run = hivemind_run(reference, published, {}).value();
    const double simulated = simulate_hivemind(run, {}).samples_per_s;
    errors.push_back(std::abs(simulated / published.samples_per_s - 1));
  }
  std::sort(errors.begin(), errors.end());
  return {errors[errors.size() / 2], errors.back()};
}

// What the constants reach today; a change of the model may better it, not worsen it.
TEST(Reference, published_families_are_reproduced) {
  const Result<Reference> reference = read_reference(TW_REFERENCE_DIR);
  ASSERT_TRUE(reference.ok()) << reference.error().message;

  const struct {
    const char* family;
    FamilyErrors most;
  } kReached[] = {{"A", {0.02, 0.03}},      {"B", {0.02, 0.15}}, {"C", {0.02, 0.11}}, {"D", {0.03, 0.05}},
                  {"Lambda", {0.02, 0.07}}, {"W", {0.05, 0.07}}, {"E", {0.06, 0.16}}, {"F", {0.12, 0.55}}};

  for (const auto& [family, most] : kReached) {
    const FamilyErrors errors = throughput_errors(reference.value(), family);
    EXPECT_LE(errors.median, most.median) << family;
    EXPECT_LE(errors.worst, most.worst) << family;
  }
}

}  // namespace
}  // namespace tw::studies
