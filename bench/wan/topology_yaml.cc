// SPDX-License-Identifier: Apache-2.0
#include "wan/topology_yaml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/text/fields.h"
#include "base/text/text_file.h"
#include "wan/topology_fields.h"

namespace tw::wan {
namespace {

constexpr std::size_t kMostSites = 32;
constexpr int kMostHosts = 64;  ///< of all sites together

template <class Target>
std::vector<KnownKey> known_keys(std::span<const Field<Target>> fields, const std::set<std::string>& others) {
  std::vector<KnownKey> known;
  for (const std::string& other : others) known.push_back({other, other});
  for (const auto& field : fields) known.push_back({std::string(field.name), std::string(field.name)});
  return known;
}

std::string shorten(const std::string& text) { return text.size() <= 40 ? text : text.substr(0, 40) + "..."; }

class Reading {
 public:
  explicit Reading(std::string file) : file_(std::move(file)) {}

  Result<Topology> read(const std::string& text) {
    try {
      read_top(YAML::Load(text));
    } catch (const YAML::Exception& e) {
      complain(e.mark.line, "", e.msg);
    }
    if (!complaints_.empty()) return Error{fmt::format("{}", fmt::join(complaints_, "\n"))};
    apply_scale();
    topology().name = std::filesystem::path(file_).stem().string();
    return std::move(topology());
  }

 private:
  Topology& topology() { return top_.topology; }

  void complain(int line, const std::string& key, const std::string& what) {
    constexpr std::size_t kEnough = 20;
    if (complaints_.size() > kEnough) return;
    complaints_.push_back(
        fmt::format("{}:{}: {}{}{}", file_, std::max(line, 0) + 1, key, key.empty() ? "" : ": ", what));
  }

  void complain(const YAML::Node& node, const std::string& key, const std::string& what) {
    complain(node.Mark().line, key, what);
  }

  void read_top(const YAML::Node& root) {
    if (!root.IsMap()) return complain(root, "", "expected keys with values, among them sites");
    read_fields<TopEntry>(root, "", top_fields(), top_, {"sites", "links"});
    read_sites(root);
    if (complaints_.empty()) read_links(root["links"]);
  }

  /// Stores the scalar values of a map; `others` are keys that the caller reads.
  template <class Target>
  void read_fields(const YAML::Node& map, const std::string& path, std::span<const Field<Target>> fields,
                   Target& target, const std::set<std::string>& others = {}) {
    std::set<std::string> seen;
    for (const auto& entry : map) {
      const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "?";
      const std::string key = path + name;
      if (!seen.insert(name).second) complain(entry.first, key, "given twice");
      if (others.contains(name)) continue;
      const Field<Target>* field = find_field(fields, name);
      if (field == nullptr) {
        complain(entry.first, key, unknown_key(name, known_keys(fields, others)));
      } else if (!entry.second.IsScalar()) {
        complain(entry.first, key, fmt::format("expected {}, found a list or a map", field->expected));
      } else if (!field->assign(entry.second.Scalar(), target)) {
        complain(entry.first, key, unexpected(std::string(field->expected), shorten(entry.second.Scalar())));
      }
    }
  }

  void read_sites(const YAML::Node& root) {
    const YAML::Node list = root["sites"];
    if (!list || !list.IsSequence() || list.size() == 0 || list.size() > kMostSites) {
      return complain(list ? list : root, "sites",
                      fmt::format("expected a list of 1 to {} sites", kMostSites));
    }
    std::set<std::string> names;
    int hosts = 0;
    for (const YAML::Node& node : list) {
      SiteEntry entry;
      entry.site.tcp = top_.tcp;
      if (!node.IsMap()) return complain(node, "sites", "expected keys with values");
      read_fields<SiteEntry>(node, "sites.", site_fields(), entry);
      if (entry.site.name.empty() || entry.site.name == "all" || !names.insert(entry.site.name).second)
        complain(node, "sites.name", "expected a name of its own for each site, and not \"all\"");
      if (hosts <= kMostHosts && (hosts += entry.site.hosts) > kMostHosts)
        complain(node, "sites.hosts", fmt::format("expected at most {} hosts in all", kMostHosts));
      topology().sites.push_back(entry.site);
      lan_rtts_.push_back(entry.lan_rtt);
    }
  }

  void read_links(const YAML::Node& list) {
    const std::size_t sites = topology().sites.size();
    topology().links.resize(sites * sites);
    for (std::size_t site = 0; site < sites; ++site) topology().link(site, site).delay = lan_rtts_[site] / 2;
    if (!list) return;
    if (!list.IsSequence()) return complain(list, "links", "expected a list of links");
    for (const YAML::Node& node : list) read_link(node);
  }

  void read_link(const YAML::Node& node) {
    if (!node.IsMap()) return complain(node, "links", "expected keys with values");
    const std::set<std::string> ends = {"from", "to", "between"};
    Link judged;
    read_fields<Link>(node, "links.", link_fields(), judged, ends);
    const auto from = read_end(node, "from"), to = read_end(node, "to");
    const YAML::Node between = node["between"];
    if (!between) return apply(node, from, to);
    if (!between.IsSequence() || between.size() != 2 || node["from"] || node["to"])
      return complain(node, "links.between", "expected two sites, such as [us, eu], and neither from nor to");
    const auto one = find_site(between, between[0]), other = find_site(between, between[1]);
    if (one < 0 || other < 0) return;
    apply(node, one, other);
    apply(node, other, one);
  }

  static constexpr int kAny = -1;

  int read_end(const YAML::Node& node, const std::string& key) {
    return node[key] ? find_site(node, node[key]) : kAny;
  }

  int find_site(const YAML::Node& where, const YAML::Node& name) {
    const auto& sites = topology().sites;
    std::vector<std::string_view> names;
    for (std::size_t site = 0; site < sites.size(); ++site) {
      if (name.IsScalar() && sites[site].name == name.Scalar()) return static_cast<int>(site);
      names.push_back(sites[site].name);
    }
    complain(where, "links",
             fmt::format("expected the name of a site ({}), found \"{}\"", fmt::join(names, ", "),
                         name.IsScalar() ? shorten(name.Scalar()) : "a list or a map"));
    return kAny;
  }

  /// A LAN is meant only where both ends name its site.
  void apply(const YAML::Node& node, int from, int to) {
    const int sites = static_cast<int>(topology().sites.size());
    for (int i = 0; i < sites; ++i) {
      for (int j = 0; j < sites; ++j) {
        const bool named = (from == kAny || from == i) && (to == kAny || to == j);
        if (named && (i != j || (from == i && to == j))) assign(node, topology().link(i, j));
      }
    }
  }

  static void assign(const YAML::Node& node, Link& link) {
    for (const auto& entry : node) {
      const Field<Link>* field = find_field(link_fields(), entry.first.Scalar());
      if (field != nullptr && entry.second.IsScalar()) field->assign(entry.second.Scalar(), link);
    }
  }

  void apply_scale() {
    const double scale = topology().scale;
    for (Site& site : topology().sites) {
      for (double* rate : {&site.nic_up_bit_s, &site.nic_down_bit_s, &site.egress_bit_s, &site.ingress_bit_s})
        *rate /= scale;
      if (!topology().scaled_buffers) continue;
      site.tcp.receive_bytes /= scale;
      site.tcp.send_bytes /= scale;
    }
    for (Link& link : topology().links) link.bit_s /= scale;
  }

  std::string file_;
  TopEntry top_;
  std::vector<Duration> lan_rtts_;
  std::vector<std::string> complaints_;
};

template <class Target>
void add_table(std::string& text, std::string_view title, std::span<const Field<Target>> fields) {
  text += fmt::format("| {} | takes | is |\n|---|---|---|\n", title);
  for (const Field<Target>& field : fields)
    text += fmt::format("| `{}` | {} | {} |\n", field.name, field.expected, field.meaning);
  text += "\n";
}

}  // namespace

Result<Topology> parse_topology(const std::string& text, const std::string& file) {
  return Reading(file).read(text);
}

std::vector<std::string> shipped_names(const std::string& shipped) {
  std::vector<std::string> names;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(shipped, failed))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

Result<Topology> read_topology(const std::string& name_or_path, const std::string& shipped) {
  const auto names = shipped_names(shipped);
  const bool ships = std::find(names.begin(), names.end(), name_or_path) != names.end();
  const std::string path = ships ? shipped + "/" + name_or_path + ".yaml" : name_or_path;
  const std::string name = std::filesystem::path(path).stem().string();
  const auto text = read_text_file(path, kMostYamlBytes);
  if (!text)
    return Error{fmt::format("{}: no such topology ({}); a file, or one that ships: {}", name_or_path,
                             text.error().message, fmt::join(names, ", "))};
  const bool plain = std::all_of(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; });
  if (name.empty() || name.size() > 32 || !plain)
    return Error{fmt::format("{}: expected a file name of 1 to 32 letters, digits, _ and -", path)};
  return parse_topology(text.value(), path);
}

std::string topology_reference() {
  std::string text;
  add_table<TopEntry>(text, "at the top", top_fields());
  add_table<SiteEntry>(text, "each of `sites`", site_fields());
  add_table<Link>(text, "each of `links`", link_fields());
  return text;
}

}  // namespace tw::wan
