// SPDX-License-Identifier: Apache-2.0
#include "base/text/tree_yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/text/split.h"

namespace tw {
namespace {

constexpr int kMostValues = 10'000;
constexpr int kMostLevels = 100;
constexpr const char* kMerge = "<<";

Tree::Kind kind_of(const YAML::Node& node) {
  if (node.IsScalar()) return Tree::Kind::word;
  if (node.IsSequence()) return Tree::Kind::list;
  return node.IsMap() ? Tree::Kind::map : Tree::Kind::nothing;
}

class TreeCopy {
 public:
  /// False: the tree is too large, or has a merge key.
  bool take(const YAML::Node& node, Tree& tree, int level) {
    if (++values_ > kMostValues || level > kMostLevels) return false;
    tree.kind = kind_of(node);
    if (tree.is_word()) tree.word = node.Scalar();
    for (const auto& entry : node) {
      Tree& item = tree.items.emplace_back();
      item.line = (tree.is_map() ? entry.first : YAML::Node(entry)).Mark().line + 1;
      if (tree.is_map()) item.key = entry.first.IsScalar() ? entry.first.Scalar() : "?";
      if (item.key == kMerge) {
        merged_ = item.line;
        return false;
      }
      if (!take(tree.is_map() ? entry.second : YAML::Node(entry), item, level + 1)) return false;
    }
    return true;
  }

  /// The line of a merge key; 0: there is none.
  int merged() const { return merged_; }

 private:
  int values_ = 0;
  int merged_ = 0;
};

/// The first line that is indented by a tab; 0: none is.
int line_with_tab(std::string_view text) {
  int number = 1;
  for (const std::string& line : split(text, '\n')) {
    if (line.substr(0, line.find_first_not_of(" \t")).find('\t') != std::string::npos) return number;
    ++number;
  }
  return 0;
}

/// yaml-cpp names neither the fault nor its remedy.
Error syntax_error(const std::string& file, std::string_view text, const YAML::Exception& fault) {
  if (const int line = line_with_tab(text); line > 0)
    return {fmt::format("{}:{}: a tab at the beginning; YAML takes spaces alone", file, line)};
  return {fmt::format("{}:{}: no valid YAML: {}; expected KEY: VALUE, and each bracket and quote closed",
                      file, std::max(fault.mark.line, 0) + 1, fault.msg)};
}

}  // namespace

const Tree* Tree::find(std::string_view name) const {
  const auto found = std::ranges::find(items, name, &Tree::key);
  return found == items.end() ? nullptr : &*found;
}

Result<Tree> parse_yaml(const std::string& file, std::string_view text) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.size() > 1)
      return Error{fmt::format("{}:{}: a second document (after ---); expected one", file,
                               std::max(documents[1].Mark().line, 0) + 1)};
    const YAML::Node root = documents.empty() ? YAML::Node() : documents.front();
    Tree tree;
    tree.line = std::max(root.Mark().line, 0) + 1;
    TreeCopy copy;
    if (copy.take(root, tree, 0)) return tree;
    if (copy.merged() > 0)
      return Error{fmt::format("{}:{}: {}: merge keys are not read; expected the keys themselves", file,
                               copy.merged(), kMerge)};
    return Error{
        fmt::format("{}:1: expected at most {} values in {} levels", file, kMostValues, kMostLevels)};
  } catch (const YAML::Exception& e) {
    return syntax_error(file, text, e);
  }
}

}  // namespace tw
