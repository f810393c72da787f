// SPDX-License-Identifier: Apache-2.0
//
// Fits the constants of predictions to published runs, and writes catalog/hivemind.csv and catalog/speeds.csv
// anew. docs/planner.md has the errors.
//   bench_calibrate FOLDER CATALOG     FOLDER: experiments.csv; CATALOG: the folder to write to

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iterator>
#include <string>

#include "base/text/csv.h"
#include "market/built_in.h"
#include "plan/fit/calibration.h"

namespace tw::bench {
namespace {

/// The table as it is built in, with the law's values.
std::string law_table(const plan::HivemindLaw& law) {
  const CsvTable before =
      CsvTable::parse("hivemind.csv", market::built_in_file("hivemind.csv"), {"constant", "unit", "what"})
          .value();
  std::string text = csv_line({"constant", "value", "unit", "what"});
  for (std::size_t i = 0; i < before.size(); ++i) {
    const CsvRow row = before.row(i);
    for (const auto& [name, constant] : plan::kHivemindConstants) {
      if (name != row.text("constant")) continue;
      text += csv_line(
          {row.text("constant"), fmt::format("{:.4g}", law.*constant), row.text("unit"), row.text("what")});
    }
  }
  return text;
}

void add_speeds(std::string& text, const std::string& model, const char* how,
                const std::map<std::string, plan::MeasuredSpeed>& speeds) {
  const char* where = std::string_view(how) == "alone" ? "" : " (Erben et al. 2024)";
  for (const auto& [gpu, speed] : speeds) {
    text += csv_line({model, gpu, how, fmt::format("{:.2f}", speed.samples_per_s),
                      fmt::format("{:.3g}", speed.factor), speed.source + where});
  }
}

std::string speed_table(const plan::Models& models) {
  std::string text = csv_line({"model", "gpu", "how", "samples_per_s", "factor", "source"});
  for (const auto& [name, model] : models.all()) {
    add_speeds(text, name, "accumulating", model.accumulating);
    add_speeds(text, name, "alone", model.alone);
  }
  return text;
}

bool write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  fmt::print("{}", text);
  return static_cast<bool>(file);
}

int calibrate(const std::string& folder, const std::string& catalog) {
  std::ifstream file(folder + "/experiments.csv");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto runs = plan::read_measured_runs(folder + "/experiments.csv", text);
  if (!runs) {
    fmt::print(stderr, "{}\n", runs.error().message);
    return 1;
  }
  const plan::Models models = models_from(runs.value(), plan::Models::built_in());
  const plan::HivemindLaw law =
      law_from(runs.value(), models, market::NetworkProfile::built_in(), plan::HivemindLaw::built_in());
  const bool written =
      write(catalog + "/hivemind.csv", law_table(law)) && write(catalog + "/speeds.csv", speed_table(models));
  if (!written) fmt::print(stderr, "{}: cannot be written\n", catalog);
  return written ? 0 : 1;
}

}  // namespace
}  // namespace tw::bench

int main(int argc, char** argv) {
  CLI::App app("Fits the constants of predictions to published runs");
  std::string folder, catalog;
  app.add_option("folder", folder, "with experiments.csv")->required();
  app.add_option("catalog", catalog, "folder to write hivemind.csv and speeds.csv to")->required();
  CLI11_PARSE(app, argc, argv);
  return tw::bench::calibrate(folder, catalog);
}
