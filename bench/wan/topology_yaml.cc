// SPDX-License-Identifier: Apache-2.0
#include "wan/topology_yaml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/text/field_table.h"
#include "base/text/text_file.h"
#include "wan/topology_fields.h"

namespace tw::wan {
namespace {

constexpr std::size_t kMostSites = 32;
constexpr int kMostHosts = 64;  ///< of all sites together

class Reading {
 public:
  explicit Reading(std::string file) : file_(std::move(file)), complaints_(file_) {}

  Result<Topology> read(const std::string& text) {
    const auto root = parse_yaml(file_, text);
    if (!root) return root.error();
    read_top(root.value());
    if (!complaints_.empty()) return complaints_.error();
    apply_scale();
    topology().name = std::filesystem::path(file_).stem().string();
    return std::move(topology());
  }

 private:
  Topology& topology() { return top_.topology; }

  void complain(const Tree& value, const std::string& key, const std::string& what) {
    complaints_.add(complaints_.place(value, key), what);
  }

  void read_top(const Tree& root) {
    read_fields<TopEntry>(root, "", top_fields(), top_, {"sites", "links"});
    const Tree* links = root.find("links");
    if (root.is_map() || complaints_.empty()) read_sites(root);
    if (complaints_.empty()) read_links(links);
  }

  /// Stores the words of a map; `others` are keys that the caller reads.
  template <class Target>
  void read_fields(const Tree& map, const std::string& section, std::span<const Field<Target>> fields,
                   Target& target, std::initializer_list<std::string_view> others = {}) {
    const std::string at = complaints_.place(map, section);
    complaints_.for_each_key(map, at, section, [&](const Tree& value, const std::string& where) {
      if (std::ranges::find(others, value.key) != others.end()) return;
      const Field<Target>* field = find_field(fields, section, value.key);
      if (field == nullptr) return complaints_.add(where, unknown_field(fields, section, value.key, others));
      const auto given = complaints_.given(value, where, std::string(field->expected));
      if (given && (given->is_list || !field->assign(given->text(), target)))
        complaints_.add(where, unexpected(std::string(field->expected), given->text()));
    });
  }

  void read_sites(const Tree& root) {
    const Tree* list = root.find("sites");
    if (list == nullptr || !list->is_list() || list->items.empty() || list->items.size() > kMostSites) {
      return complain(list != nullptr ? *list : root, "sites",
                      fmt::format("expected a list of 1 to {} sites", kMostSites));
    }
    std::set<std::string> names;
    int hosts = 0;
    for (const Tree& node : list->items) {
      SiteEntry entry;
      entry.site.tcp = top_.tcp;
      read_fields<SiteEntry>(node, "sites", site_fields(), entry);
      if (entry.site.name.empty() || entry.site.name == "all" || !names.insert(entry.site.name).second)
        complain(node, "sites.name", "expected a name of its own for each site, and not \"all\"");
      if (hosts <= kMostHosts && (hosts += entry.site.hosts) > kMostHosts)
        complain(node, "sites.hosts", fmt::format("expected at most {} hosts in all", kMostHosts));
      topology().sites.push_back(entry.site);
      lan_rtts_.push_back(entry.lan_rtt);
    }
  }

  void read_links(const Tree* list) {
    const std::size_t sites = topology().sites.size();
    topology().links.resize(sites * sites);
    for (std::size_t site = 0; site < sites; ++site) topology().link(site, site).delay = lan_rtts_[site] / 2;
    if (list == nullptr) return;
    if (!list->is_list()) return complain(*list, "links", "expected a list of links");
    for (const Tree& node : list->items) read_link(node);
  }

  void read_link(const Tree& node) {
    Link judged;
    read_fields<Link>(node, "links", link_fields(), judged, {"from", "to", "between"});
    const auto from = read_end(node, "from"), to = read_end(node, "to");
    const Tree* between = node.find("between");
    if (between == nullptr) return apply(node, from, to);
    if (!between->is_list() || between->items.size() != 2 || node.find("from") || node.find("to"))
      return complain(node, "links.between", "expected two sites, such as [us, eu], and neither from nor to");
    const auto one = find_site(between->items[0]), other = find_site(between->items[1]);
    if (one < 0 || other < 0) return;
    apply(node, one, other);
    apply(node, other, one);
  }

  static constexpr int kAny = -1;

  int read_end(const Tree& node, std::string_view key) {
    const Tree* end = node.find(key);
    return end != nullptr ? find_site(*end) : kAny;
  }

  int find_site(const Tree& name) {
    const auto& sites = topology().sites;
    std::vector<std::string_view> names;
    for (std::size_t site = 0; site < sites.size(); ++site) {
      if (name.is_word() && sites[site].name == name.word) return static_cast<int>(site);
      names.push_back(sites[site].name);
    }
    const std::string expected = fmt::format("the name of a site ({})", fmt::join(names, ", "));
    if (const auto given = complaints_.given(name, complaints_.place(name, "links"), expected))
      complain(name, "links", unexpected(expected, given->text()));
    return kAny;
  }

  /// A LAN is meant only where both ends name its site.
  void apply(const Tree& node, int from, int to) {
    const int sites = static_cast<int>(topology().sites.size());
    for (int i = 0; i < sites; ++i) {
      for (int j = 0; j < sites; ++j) {
        const bool named = (from == kAny || from == i) && (to == kAny || to == j);
        if (named && (i != j || (from == i && to == j))) assign(node, topology().link(i, j));
      }
    }
  }

  static void assign(const Tree& node, Link& link) {
    for (const Tree& value : node.items) {
      const Field<Link>* field = find_field(link_fields(), "links", value.key);
      if (field != nullptr && value.is_word()) field->assign(value.word, link);
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
  Complaints complaints_;
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
