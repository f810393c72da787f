#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proves that each rule of the check_ tools fires on a bad sample and is quiet on a good one."""
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
for name in [name for name in os.environ if name.startswith("GIT_")]:
    del os.environ[name]  # in a hook of git they name the repository that called it
TOOLS = Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS)]
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
LAYERS = """
base: nothing
world: base
train: base
host: world base
cli: all
"""


def load(name):
    loader = importlib.machinery.SourceFileLoader(name, str(TOOLS / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


layers_tool, style_tool, prose_tool = load("check_layers"), load("check_style"), load("check_prose")
names_tool, commit_tool = load("check_names"), load("check_commit")


class Tree(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        self.write("src/layers.txt", LAYERS)
        self.write("tools/style_exceptions.txt", "")

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def remove(self, path):
        (self.root / path).unlink()


class Layers(Tree):
    def includes(self, path, line):
        """The complaints about one file of src/ that holds this one line."""
        self.write(f"src/{path}", line + "\n")
        found = list(layers_tool.check(self.root))
        self.remove(f"src/{path}")
        return found

    def refuses(self, path, line):
        self.assertEqual(1, len(self.includes(path, line)), (path, line))

    def accepts(self, path, line):
        self.assertEqual([], self.includes(path, line))

    def test_includes_go_down_the_table_only(self):
        self.accepts("world/clock.h", '#include "base/ids.h"')
        self.accepts("world/clock.h", '#include "world/files.h"')
        self.accepts("cli/main.cc", '#include "host/tcp.h"')
        self.refuses("base/ids.h", '#include "world/clock.h"')
        self.refuses("world/clock_test.cc", '#include "host/tcp.h"')

    def test_folders_begin_with_a_page(self):
        self.write("src/base/text/csv.h", "")
        self.assertEqual(1, len(list(layers_tool.check_pages(self.root))))
        self.write("src/base/README.md", "# base\n" * 9 + "`text/`\n")
        self.assertEqual([], list(layers_tool.check_pages(self.root)))
        for text in ["`text/`\n" * 9, "`text/`\n" * 26, "# base\n" * 12]:
            self.write("src/base/README.md", text)
            self.assertEqual(1, len(list(layers_tool.check_pages(self.root))), text)

    def test_includes_name_a_folder_of_the_table(self):
        self.refuses("base/ids.cc", '#include "ids.h"')
        self.refuses("base/ids.cc", '#include "nowhere/ids.h"')
        self.refuses("base/ids.cc", "#include <base/ids.h>")
        self.refuses("nowhere/ids.cc", "#include <vector>")

    def test_each_folder_is_a_namespace(self):
        for path, name in [
            ("base/ids.h", "tw"),
            ("world/clock.h", "tw::world"),
            ("train/mode_test.cc", "tw::train"),
            ("host/tcp/link.cc", "tw::host"),
            ("train/learn/mode.h", "tw::train::sample"),
        ]:
            self.accepts(path, f"namespace {name} {{\nnamespace {{\nstruct Probe {{}};\n}}\n}}")
        for path, name in [
            ("base/ids.h", "tw::base"),
            ("base/ids.h", "tw::world"),
            ("world/clock.h", "tw"),
            ("host/tcp/link.cc", "tw::tcp"),
            ("host/link.cc", "tw::hosts"),
            ("host/link.h", "asio"),
        ]:
            self.refuses(path, f"namespace {name} {{\nstruct Probe {{}};\n}}")
        self.accepts("host/link.h", "namespace asio {\nclass io_context;\n}  // namespace asio")
        self.refuses("host/link.h", "namespace tw::world {\nclass Clock;\n}  // namespace tw::world")

    def test_each_library_has_one_place(self):
        for good, bad, header in [
            ("host/tcp.cc", "world/network.cc", "asio.hpp"),
            ("host/tcp.h", "cli/train.cc", "asio/ip/tcp.hpp"),
            ("host/identity/tls.cc", "base/digest.cc", "openssl/ssl.h"),
            ("train/run_yaml.cc", "train/run.cc", "yaml-cpp/yaml.h"),
            ("host/log_json.cc", "host/log_json.h", "nlohmann/json.hpp"),
            ("cli/train.cc", "train/run.cc", "CLI/CLI.hpp"),
            ("base/digest.cc", "base/digest.h", "xxhash.h"),
            ("base/digest.cc", "base/checksum.cc", "xxh_x86dispatch.h"),
        ]:
            self.accepts(good, f"#include <{header}>")
            self.refuses(bad, f"#include <{header}>")
        self.refuses("train/session/session.cc", "#include <torch/torch.h>")


class Style(Tree):
    def rules(self, text, path="src/base/sample.cc"):
        """The rules that a tree with this one file breaks."""
        self.write(path, SPDX + text)
        found = [p.rule for p in style_tool.check(self.root)]
        self.remove(path)
        return found

    def fires(self, rule, text, path="src/base/sample.cc"):
        self.assertEqual([rule], self.rules(text, path), (path, text[:200]))

    def quiet(self, text, path="src/base/sample.cc"):
        self.assertEqual([], self.rules(text, path), (path, text[:200]))

    def test_function_length(self):
        statements = "  step();\n"
        self.fires("function-length", "void f() {\n" + statements * 59 + "}\n")
        self.fires("function-length", "struct A {\n  A() : a_{1}, b_(2) {\n" + statements * 59 + "  }\n};\n")
        self.fires("function-length", "namespace a {\nint f() const {\n" + statements * 59 + "}\n}\n")
        self.quiet("void f() {\n" + statements * 58 + "}\n")
        self.quiet("struct A {\n" + "  int f() { return 1; }\n" * 80 + "};\n")
        self.quiet("constexpr int kTable[] = {\n" + "  1,\n" * 80 + "};\n")
        self.quiet('const char* text = R"(void f() {\n' + "\n" * 80 + ')";\n')

    def test_parameters(self):
        self.fires("parameters", "void f(int a, int b, int c, int d, int e, int f) {}\n")
        self.fires("parameters", "struct A {\n  virtual void f(int, int, int, int, int, int) = 0;\n};\n")
        self.quiet("void f(int a, int b, int c, int d, int e) {}\n")
        self.quiet("void f(std::map<int, int> a, std::array<int, 5> b, std::function<void(int, int)> c) {}\n")
        self.quiet("bool operator()(int a, std::pair<int, int> b) { return g(1, 2, 3, 4, 5, 6); }\n")
        self.quiet("INSTANTIATE(a, b, c, d, e, f);\n")

    def test_file_length(self):
        limits = {"src/base/a.cc": 600, "src/base/a.h": 250, "src/base/a_test.cc": 800, "tests/a.h": 800}
        for path, limit in limits.items():
            self.quiet("\n" * (limit - 1), path)
            self.fires("file-length", "\n" * limit, path)

    def test_line_length(self):
        self.quiet("//" + "x" * 108 + "\n")
        self.fires("line-length", "//" + "x" * 109 + "\n")
        self.quiet("// see https://example.org/" + "x" * 109 + "\n")

    def test_door_methods(self):
        method = "  virtual void f() const = 0;\n"
        door = "class Door {\n public:\n  virtual ~Door() = default;\n" + method * 6
        self.quiet(door + "};\n", "src/world/door.h")
        self.fires("door-methods", door + method + "};\n", "src/world/door.h")
        self.quiet(door + method + "};\n", "src/train/session/session.h")

    def test_members_and_booleans_of_a_class(self):
        function = "  int f() const {\n    if (a0_ > 0) { a1_ = 1; }\n    return a0_;\n  }\n"
        members = function + "".join(f"  int a{i}_ = 0;\n" for i in range(19))
        self.quiet("class Peer {\n" + members + "  std::vector<int> b_{};\n};\n")
        self.fires("members", "class Peer {\n" + members + "  int b_, c_{};\n};\n")
        calls = "  std::shared_ptr<int> b_ = std::make_shared<int>(0);  // owners: one\n  int c_ = f(g(1));\n"
        self.fires("members", "class Peer {\n" + members + calls + "};\n")
        two = "  std::map<int, int> b_;\n  int c_[3] = {};\n"
        self.fires("members", "class Peer {\n" + members + two + "};\n")
        self.quiet("class Peer {\n" + members + "};\nclass Other {\n" + members + "};\n")
        self.quiet("struct Options {\n" + "  bool a = false;\n" * 30 + "};\n")
        plain = "struct State {\n" + "  int a = 0;\n" * 20
        self.quiet(plain + "  void add(int more = {}) { a += more; }\n  void drop(int most);\n};\n")
        self.fires("members", plain + "  const std::map<int, int> b;\n  void drop(int most);\n};\n")
        self.quiet(plain + "  int b;\n  static void fields(auto& self, auto&& f) { f(self.a); }\n};\n")
        booleans = "class Peer {\n  bool a_ = false;\n  mutable bool b_, c;\n  bool is_a() { return a_; }\n"
        self.quiet(booleans + "};\n")
        self.fires("booleans", booleans + "  std::atomic<bool> d_ = false;\n};\n")

    def test_methods_of_a_class(self):
        methods = "class Peer {\n public:\n" + "".join(f"  int f{i}() const;\n" for i in range(39))
        overloads = "  Peer(int a);\n  ~Peer();\n  void g(int a);\n  void g(double a) { f0(); }\n"
        self.quiet(methods + overloads + "};\n")
        self.fires("methods", methods + overloads + " private:\n  static bool h() { return f(a); }\n};\n")

    def test_shared_ptr_names_its_owners(self):
        line = "std::shared_ptr<int> buffer_;"
        self.fires("shared-ptr", line + "\n")
        self.fires("shared-ptr", "// Where the bytes are.\n" + line + "\n")
        self.fires("shared-ptr", "// owners: the queue and the socket\nint a;\n" + line + "\n")
        self.quiet("// Its owners are the queue, until the send,\n// and the socket.\n" + line + "\n")
        self.quiet(line + "  // owners: queue and socket\n")
        self.quiet("// no shared_ptr here\n")

    def test_names(self):
        for text in ["class PeerManager {", "struct Utils {", "enum class Misc { kA", "union MessageImpl {"]:
            self.fires("name", text + "};\n")
        self.fires("name", "using SocketWrapper = int;\n")
        self.fires("name", "", "src/base/string_util.cc")
        self.quiet("struct Implicit {};\nusing Commonwealth = int;\nclass ServicedLink {};\n")

    def test_world_words(self):
        for text in ["sleep_for(1s);", "chrono::steady_clock::now();", "int a = rand();", 'getenv("HOME");']:
            self.fires("world", text + "\n", "src/train/sample.cc")
            self.fires("world", text + "\n", "tests/sample.cc")
            for folder in ["src/host", "src/cli", "bench", "tests/e2e"]:
                self.quiet(text + "\n", folder + "/sample.cc")
        self.quiet("// the steady_clock\nauto a = torch::rand({2});\nint operand(int);\n")

    def test_predicates_that_the_compiler_of_the_wheel_does_not_call(self):
        self.fires("predicate", "std::erase_if(peers, &Peer::gone);\n")
        self.quiet("std::ranges::any_of(all, &Peer::gone);\nstd::erase_if(all, [](int) { return true; });\n")

    def test_room_files(self):
        for number in range(30):
            self.write(f"src/base/text/a{number}.h", SPDX)
        for path in ["src/base/text/a_test.cc", "src/base/text/test_a.h", "src/base/a.h"]:
            self.write(path, SPDX)
        self.assertEqual([], list(style_tool.check(self.root)))
        self.write("src/base/text/a30.h", SPDX)
        self.assertEqual(["room-files"], [p.rule for p in style_tool.check(self.root)])

    def test_spdx(self):
        cpp, scripts = ["src/a.cc", "src/a.h"], ["tools/a.py", "tools/a.sh"]
        for path in [*cpp, *scripts, "bench/CMakeLists.txt", "Makefile", "tests/a.yaml"]:
            self.write(path, "\n" * 5 + SPDX)
            self.assertEqual(["spdx"], [p.rule for p in style_tool.check(self.root)], path)
            self.remove(path)
        self.write("tools/script", "#!/bin/sh\n")
        self.assertEqual(["spdx"], [p.rule for p in style_tool.check(self.root)])

    def test_only_what_git_tracks_is_judged(self):
        self.write("PLAN.yaml", "peers: 1\n")
        self.write("src/base/new.cc", "\n")
        self.write("README.md", "Who reads this does so again.\n")
        self.assertEqual(2, len(list(style_tool.check(self.root))))
        self.assertEqual(1, len(list(prose_tool.check(self.root))))
        other = Path(self.root).resolve() / "clone"
        pages = ["README.md", "src/layers.txt", "tools/style_exceptions.txt"]
        for path in ["PLAN.yaml", "src/base/new.cc", *pages]:
            (other / path).parent.mkdir(parents=True, exist_ok=True)
            (other / path).write_text((self.root / path).read_text())
        git = ["git", "-C", str(other)]
        subprocess.run([*git, "init", "-q"], check=True)
        subprocess.run([*git, "add", "src"], check=True)
        self.assertEqual(["src/base/new.cc"], [p.path for p in style_tool.check(other)])
        self.assertEqual([], list(prose_tool.check(other)))

    def test_vendored_files_have_their_licence_beside_them(self):
        self.write("web/vendor/plot/plot.js", "var plot;")
        self.assertEqual(["licence"], [p.rule for p in style_tool.check(self.root)])
        self.write("web/vendor/plot/LICENSE", "MIT")
        self.assertEqual([], [p.rule for p in style_tool.check(self.root)])

    def test_exceptions_have_a_use(self):
        self.write("tools/style_exceptions.txt", "src/base/sample.cc name the word stands in the protocol\n")
        self.quiet("class PeerManager {};\n")
        self.fires("exception", "class Peers {};\n")


class Names(Tree):
    def found(self, first, second):
        self.write("src/base/a.h", "namespace tw {\n" + first + "\n}  // namespace tw\n")
        self.write("src/world/b.h", "namespace tw {\n" + second + "\n}  // namespace tw\n")
        return list(names_tool.check(self.root))

    def test_one_name_one_type(self):
        for kind in ["struct Probe {};", "class Probe final : public Door {", "enum class Probe { a };"]:
            self.assertEqual(1, len(self.found("struct Probe {\n};", kind)), kind)
        problem = self.found("struct Probe {", "class Probe {")[0]
        self.assertIn("tw::Probe is defined in src/base/a.h and src/world/b.h", problem)

    def test_other_names(self):
        for other in ["struct Probes {", "class Probe;", "struct Probe::Part {", "  struct Probe {",
                      "namespace {\nstruct Probe {\n};\n}  // namespace",
                      "namespace bench {\nstruct Probe {\n};\n}  // namespace bench"]:
            self.assertEqual([], self.found("struct Probe {\n};", other), other)


class Commit(unittest.TestCase):
    def found(self, message):
        return list(commit_tool.complaints(message))

    def test_subjects_have_at_most_72_characters(self):
        self.assertEqual([], self.found("x" * 72 + "\n\nA body of any length: " + "x" * 90 + "\n"))
        self.assertIn("73 characters", self.found("x" * 73)[0])

    def test_a_message_is_a_subject_and_perhaps_a_body(self):
        self.assertEqual([], self.found("Subject\n# what git says\n"))
        self.assertIn("empty", self.found("\n\nbody\n")[0])
        self.assertIn("empty", self.found("# what git says\n")[0])
        self.assertIn("second line", self.found("Subject\nbody\n")[0])


class Prose(Tree):
    LONG = "a " * 30 + "a."
    SHORT = "A " + "a " * 28 + "a."

    def found(self, text, page="docs/page.md"):
        self.write(page, text)
        found = list(prose_tool.check(self.root))
        self.remove(page)
        return found

    def test_long_sentences(self):
        self.assertEqual([], self.found(self.SHORT))
        for page in ["README.md", "docs/page.md"]:
            self.assertEqual(1, len(self.found(self.LONG, page)), page)
        self.assertEqual(1, len(self.found("1. " + self.LONG)))
        self.assertEqual(1, len(self.found(self.LONG.replace(" ", "\n"))))
        self.assertEqual([], self.found(self.SHORT + " " + self.SHORT))
        self.assertEqual([], self.found("- " + self.SHORT + "\n- " + self.SHORT))

    def test_names_the_line(self):
        self.assertIn("docs/page.md:3: a sentence of 31 words", self.found("A line.\n\n" + self.LONG)[0])

    def test_full_cells(self):
        self.assertEqual([], self.found("| a | " + "do " * 40 + "| [x](" + "y" * 90 + ") |"))
        self.assertIn("docs/page.md:2: a cell of 41 words", self.found("| a |\n| b | " + "do " * 41 + "|")[0])

    def test_long_lines(self):
        for text in ["x" * 140, "| " + "x" * 141 + " |", "[1]: " + "x" * 141]:
            self.assertEqual([], self.found(text), text)
        for text in ["x" * 141, "    " + "x" * 137, "```\n" + "x" * 141 + "\n```"]:
            self.assertEqual(1, len(self.found(text)), text)

    def test_sentences_without_a_noun(self):
        for text in ["Who sends pays.", "A rule. Of 57 bugs 46 were found.", "- Whoever pays", "*Who* pays"]:
            self.assertEqual(1, len(self.found(text)), text)
        self.assertEqual([], self.found("Officers whose noun is there. Who pays?"))

    def test_comments_without_a_noun(self):
        bad = ["/// Of a round.", "// Fine.\n// Whoever pays.", "  /// The sender pays. Of all\n  /// peers."]
        for comment in bad:
            self.assertEqual(1, len(self.found(comment + "\nint a;\n", "src/base/a.h")), comment)
        good = ["/// Time of a round.", "int a;  ///< Of a round", "// End\nint a;\n// of it", 'f("// Of");']
        for text in good:
            self.assertEqual([], self.found(text + "\n", "src/base/a.h"), text)

    def test_reads_no_code_tables_and_pictures(self):
        for text in ["    ", "| ", "![", "[1]: ", "<!-- "]:
            self.assertEqual([], self.found("Text:\n\n" + text + self.LONG), text)
        self.assertEqual([], self.found("```\n" + self.LONG + "\n```\n"))
        self.assertEqual([], self.found("A " + "`several words`" + " a" * 28 + "."))


if __name__ == "__main__":
    unittest.main(verbosity=0)
