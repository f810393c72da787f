// SPDX-License-Identifier: Apache-2.0
#include "sim/scenarios/scenario_yaml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "base/text/fields.h"
#include "base/text/text_file.h"
#include "sim/scenarios/scenario_fields.h"

namespace tw::sim {
namespace {

class ScenarioReading {
 public:
  explicit ScenarioReading(std::string file) : file_(std::move(file)) {
    parts_.scenario.name = std::filesystem::path(file_).stem().string();
  }

  Result<Scenario> read(const std::string& text) {
    try {
      read_top(YAML::Load(text));
    } catch (const YAML::Exception& e) {
      complain(fmt::format("{}:{}", file_, e.mark.line + 1), e.msg);
    }
    parts_.scenario.times.rounds = parts_.scenario.workload.rounds;
    if (complaints_.empty()) check_together();
    if (!complaints_.empty()) return Error{fmt::format("{}", fmt::join(complaints_, "\n"))};
    return std::move(parts_.scenario);
  }

 private:
  void complain(const std::string& where, const std::string& what) {
    complaints_.push_back(fmt::format("{}: {}", where, what));
  }

  std::string where(const YAML::Node& node, const std::string& key) const {
    const std::string line = fmt::format("{}:{}", file_, node.Mark().line + 1);
    return key.empty() ? line : fmt::format("{}: {}", line, key);
  }

  /// Calls visit(name, value, where) for each key of a map, once.
  template <class Visit>
  void for_each_key(const YAML::Node& map, const std::string& path, Visit visit) {
    std::set<std::string> seen;
    for (const auto& entry : map) {
      const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "?";
      const std::string here = where(entry.first, path.empty() ? name : fmt::format("{}.{}", path, name));
      if (!seen.insert(name).second) {
        complain(here, "given twice");
      } else {
        visit(name, entry.second, here);
      }
    }
  }

  void read_top(const YAML::Node& root) {
    if (root.IsNull()) return;
    if (!root.IsMap()) return complain(where(root, ""), "expected keys with values");
    for_each_key(root, "", [&](const std::string& name, const YAML::Node& value, const std::string& here) {
      if (name == "sites") return read_sites(value, here);
      if (name == "links") return read_links(value, here);
      if (name == "workload") return read_map(ScenarioSection::workload, value, here, name);
      if (name == "faults") return read_faults(value, here);
      read_key(ScenarioSection::top, name, value, here);
    });
  }

  void read_map(ScenarioSection section, const YAML::Node& map, const std::string& here,
                const std::string& path) {
    if (!map.IsMap()) return complain(here, "expected keys with values");
    for_each_key(map, path, [&](const std::string& name, const YAML::Node& value, const std::string& at) {
      read_key(section, name, value, at);
    });
  }

  void read_key(ScenarioSection section, const std::string& name, const YAML::Node& value,
                const std::string& here) {
    const ScenarioField* field = find_scenario_field(section, name);
    if (field == nullptr) return complain(here, unknown_scenario_key(section, name));
    GivenWords given{.words = {}, .is_list = value.IsSequence()};
    const auto add = [&](const YAML::Node& one) {
      if (one.IsScalar() || one.IsNull()) given.words.push_back(one.IsNull() ? "" : one.Scalar());
      return one.IsScalar() || one.IsNull();
    };
    const bool plain = given.is_list ? std::all_of(value.begin(), value.end(),
                                                   [&](const YAML::Node& one) { return add(one); })
                                     : add(value);
    if (!plain) {
      return complain(here, fmt::format("expected {}, found {}", expectation(*field),
                                        given.is_list ? "a list of lists or maps" : "a map"));
    }
    const std::string complaint = assign(*field, given, parts_);
    if (!complaint.empty()) complain(here, complaint);
  }

  void read_sites(const YAML::Node& list, const std::string& here) {
    if (!list.IsSequence() || list.size() == 0) return complain(here, "expected a list of sites");
    parts_.scenario.sites.clear();
    for (const YAML::Node& entry : list) {
      parts_.site = {};
      read_map(ScenarioSection::site, entry, where(entry, "sites"), "sites");
      const std::string& name = parts_.site.name;
      if (!places_.emplace(name, where(entry, "sites.name")).second) {
        complain(where(entry, "sites.name"),
                 fmt::format("expected a name of its own for each site, found \"{}\" again", name));
      }
      parts_.scenario.sites.push_back(parts_.site);
    }
  }

  void read_links(const YAML::Node& list, const std::string& here) {
    if (!list.IsSequence() || list.size() == 0) return complain(here, "expected a list of links");
    parts_.scenario.links.clear();
    for (const YAML::Node& entry : list) {
      parts_.link = {};
      const std::string at = where(entry, "links");
      read_map(ScenarioSection::link, entry, at, "links");
      parts_.scenario.links.push_back(parts_.link);
      link_places_.push_back(at);
    }
  }

  void read_faults(const YAML::Node& map, const std::string& here) {
    if (map.IsNull()) return;
    if (!map.IsMap()) return complain(here, "expected faults by name, such as kill: 0.5");
    for_each_key(map, "faults", [&](const std::string& name, const YAML::Node& value, const std::string& at) {
      const auto kind = fault_named(name);
      if (!kind) return complain(at, unknown_fault(name));
      parts_.fault = ScenarioParts{}.fault;
      parts_.fault.kind = *kind;
      if (value.IsMap()) {
        read_map(ScenarioSection::fault, value, at, "faults." + name);
      } else {
        read_key(ScenarioSection::fault, "chance", value, at);
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
    if (peers < 1) complain(file_, "sites.peers: expected at least one peer at the beginning");
    if (peers > scenario.most_peers) {
      complain(file_, fmt::format("most_peers: expected at least the {} peers of the sites, found \"{}\"",
                                  peers, scenario.most_peers));
    }
    for (std::size_t i = 0; i < link_places_.size(); ++i) {
      check_end(link_places_[i] + ".from", scenario.links[i].from, names);
      check_end(link_places_[i] + ".to", scenario.links[i].to, names);
    }
  }

  void check_end(const std::string& where, const std::string& name, const std::vector<std::string>& sites) {
    if (name.empty() || std::find(sites.begin(), sites.end(), name) != sites.end()) return;
    complain(where, fmt::format("expected the name of a site ({}), found \"{}\"{}", fmt::join(sites, ", "),
                                name, did_you_mean(name, sites)));
  }

  std::string file_;
  ScenarioParts parts_;
  std::map<std::string, std::string> places_;  ///< of the sites, by name
  std::vector<std::string> link_places_;
  std::vector<std::string> complaints_;
};

}  // namespace

Result<Scenario> parse_scenario(const std::string& text, const std::string& file) {
  return ScenarioReading(file).read(text);
}

Result<Scenario> read_scenario(const std::string& path) {
  const auto text = read_text_file(path, kMostYamlBytes);
  if (!text) return text.error();
  return parse_scenario(text.value(), path);
}

}  // namespace tw::sim
