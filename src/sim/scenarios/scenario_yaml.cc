// SPDX-License-Identifier: Apache-2.0
#include "sim/scenarios/scenario_yaml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

#include "base/result.h"
#include "base/text/field_table.h"
#include "base/text/text_file.h"
#include "sim/scenarios/scenario_fields.h"

namespace tw::sim {
namespace {

class ScenarioReading {
 public:
  explicit ScenarioReading(std::string file) : file_(std::move(file)), complaints_(file_) {
    parts_.scenario.name = std::filesystem::path(file_).stem().string();
  }

  Result<Scenario> read(const std::string& text) {
    TW_TRY(const auto root, parse_yaml(file_, text));
    read_top(root);
    parts_.scenario.times.rounds = parts_.scenario.workload.rounds;
    if (complaints_.empty()) check_together();
    if (!complaints_.empty()) return complaints_.error();
    return std::move(parts_.scenario);
  }

 private:
  void read_top(const Tree& root) {
    complaints_.for_each_key(root, complaints_.place(root), "",
                             [&](const Tree& value, const std::string& here) {
                               if (value.key == "sites") return read_sites(value, here);
                               if (value.key == "links") return read_links(value, here);
                               if (value.key == kWorkload) return read_map(kWorkload, value, here, value.key);
                               if (value.key == "faults") return read_faults(value, here);
                               read_key("", value.key, value, here);
                             });
  }

  void read_map(std::string_view section, const Tree& map, const std::string& here, const std::string& path) {
    complaints_.for_each_key(map, here, path, [&](const Tree& value, const std::string& at) {
      read_key(section, value.key, value, at);
    });
  }

  void read_key(std::string_view section, const std::string& name, const Tree& value,
                const std::string& here) {
    const ScenarioField* field = find_scenario_field(section, name);
    if (field == nullptr) return complaints_.add(here, unknown_scenario_key(section, name));
    const auto given = complaints_.given(value, here, expectation(*field));
    const std::string complaint = given ? assign(*field, *given, parts_) : "";
    if (!complaint.empty()) complaints_.add(here, complaint);
  }

  void read_sites(const Tree& list, const std::string& here) {
    if (!list.is_list() || list.items.empty()) return complaints_.add(here, "expected a list of sites");
    parts_.scenario.sites.clear();
    for (const Tree& entry : list.items) {
      parts_.site = {};
      read_map(kSites, entry, complaints_.place(entry, "sites"), "sites");
      const std::string& name = parts_.site.name;
      if (!places_.emplace(name, complaints_.place(entry, "sites.name")).second) {
        complaints_.add(complaints_.place(entry, "sites.name"),
                        fmt::format("expected a name of its own for each site, found \"{}\" again", name));
      }
      parts_.scenario.sites.push_back(parts_.site);
    }
  }

  void read_links(const Tree& list, const std::string& here) {
    if (!list.is_list() || list.items.empty()) return complaints_.add(here, "expected a list of links");
    parts_.scenario.links.clear();
    for (const Tree& entry : list.items) {
      parts_.link = {};
      const std::string at = complaints_.place(entry, "links");
      read_map(kLinks, entry, at, "links");
      parts_.scenario.links.push_back(parts_.link);
      link_places_.push_back(at);
    }
  }

  void read_faults(const Tree& map, const std::string& here) {
    if (map.is_list() || map.is_word())
      return complaints_.add(here, "expected faults by name, such as kill: 0.5");
    complaints_.for_each_key(map, here, "faults", [&](const Tree& value, const std::string& at) {
      const FaultRow* fault = fault_named(value.key);
      if (fault == nullptr) return complaints_.add(at, unknown_fault(value.key));
      parts_.fault = ScenarioParts{}.fault;
      parts_.fault.kind = fault->kind;
      if (value.is_map()) {
        read_map(kFault, value, at, "faults." + value.key);
      } else {
        read_key(kFault, "chance", value, at);
      }
      parts_.scenario.faults.push_back(parts_.fault);
    });
  }

  void check_together() {
    const Scenario& scenario = parts_.scenario;
    std::vector<std::string> names;
    int peers = 0;
    for (const SiteSpec& site : scenario.sites) {
      names.push_back(site.name);
      peers += site.peers;
    }
    if (peers < 1) complaints_.add(file_, "sites.peers: expected at least one peer at the beginning");
    if (peers > scenario.most_peers) {
      complaints_.add(
          file_, fmt::format("most_peers: expected at least the {} peers of the sites, found \"{}\"", peers,
                             scenario.most_peers));
    }
    if (scenario.times.calm_rounds >= scenario.times.rounds) {
      complaints_.add(file_,
                      fmt::format("calm_rounds: expected fewer than the {} of workload.rounds, found \"{}\"",
                                  scenario.times.rounds, scenario.times.calm_rounds));
    }
    for (std::size_t i = 0; i < link_places_.size(); ++i) {
      check_end(link_places_[i] + ".from", scenario.links[i].from, names);
      check_end(link_places_[i] + ".to", scenario.links[i].to, names);
    }
  }

  void check_end(const std::string& where, const std::string& name, const std::vector<std::string>& sites) {
    if (name.empty() || std::find(sites.begin(), sites.end(), name) != sites.end()) return;
    complaints_.add(where, fmt::format("expected the name of a site ({}), found \"{}\"{}",
                                       fmt::join(sites, ", "), name, did_you_mean(name, sites)));
  }

  std::string file_;
  ScenarioParts parts_;
  std::map<std::string, std::string> places_;  ///< of the sites, by name
  std::vector<std::string> link_places_;
  Complaints complaints_;
};

}  // namespace

Result<Scenario> parse_scenario(const std::string& text, const std::string& file) {
  return ScenarioReading(file).read(text);
}

Result<Scenario> read_scenario(const std::string& path) {
  TW_TRY(const auto text, read_text_file(path, kMostYamlBytes));
  return parse_scenario(text, path);
}

}  // namespace tw::sim
