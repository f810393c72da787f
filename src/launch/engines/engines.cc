// SPDX-License-Identifier: Apache-2.0
#include "launch/engines/engines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/result.h"
#include "base/text/fields.h"
#include "launch/engine_choice.h"
#include "launch/engines/mixed_engine.h"

namespace tw::launch {
namespace {

struct KnownEngine {
  const char* name;
  std::unique_ptr<Engine> (*make)();
};

constexpr KnownEngine kEngines[] = {
    {"ssh", ssh_engine},        {"slurm", slurm_engine}, {"skypilot", skypilot_engine},
    {"k8s", kubernetes_engine}, {"local", local_engine},
};

}  // namespace

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const KnownEngine& engine : kEngines) names.emplace_back(engine.name);
  return names;
}

Result<std::unique_ptr<Engine>> one_engine(const std::string& name) {
  for (const KnownEngine& engine : kEngines)
    if (name == engine.name) return engine.make();
  const std::vector<std::string> names = engine_names();
  return Error{
      fmt::format("--on {}: expected one of {}{}", name, fmt::join(names, ", "), did_you_mean(name, names))};
}

Result<std::unique_ptr<Engine>> make_engine(const std::string& on) {
  TW_TRY(auto choice, EngineChoice::parse({on}));
  if (choice.is_one()) return one_engine(on);
  return mixed_engine(std::move(choice));
}

}  // namespace tw::launch
