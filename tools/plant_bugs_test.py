#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proves that plant_bugs changes what it says and no more, and complains where a bug no longer applies."""
import importlib.machinery
import importlib.util
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
TOOL = Path(__file__).resolve().parent / "plant_bugs"
CODE = """
int first(int a) {
  if (a > 0) return 1;
  return a +
         2;
}

int second(int a) {
  if (a > 0) return 1;
  return 2;
}
"""


def load():
    loader = importlib.machinery.SourceFileLoader("plant_bugs", str(TOOL))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("plant_bugs", loader))
    sys.modules["plant_bugs"] = module
    loader.exec_module(module)
    return module


tool = load()


def planted(*changes):
    text = "\n".join(f"bug-{i}\n  A sentence.\n{change}" for i, change in enumerate(changes))
    bugs = tool.read_bugs(text)
    code = tool.plant(CODE, [(bug, change) for bug in bugs for change in bug.changes])
    for i, bug in enumerate(bugs):
        code = code.replace(f"::tw::planted({bug.number}U)", f"bug{i}")
    return code


class Planting(unittest.TestCase):
    def test_replaces_an_expression(self):
        code = planted("  in a.cc\n  - a + 2\n  + a + 3")
        self.assertIn("return (bug0 ? (a + 3) : (a +\n         2));", code)

    def test_replaces_a_statement(self):
        code = planted("  in a.cc\n  - return 2;\n  + return 3;")
        self.assertIn("{ if (bug0) { return 3; } else { return 2; } }", code)

    def test_takes_a_statement_away(self):
        self.assertIn("{ if (bug0) {  } else { return 2; } }", planted("  in a.cc\n  - return 2;"))

    def test_keeps_to_the_block_that_is_named(self):
        code = planted("  in a.cc int second(\n  - a > 0\n  + false")
        self.assertIn("int first(int a) {\n  if (a > 0)", code)
        self.assertIn("int second(int a) {\n  if ((bug0 ? (false) : (a > 0)))", code)

    def test_takes_several_lines_as_one_text(self):
        self.assertIn("bug0", planted("  in a.cc\n  - if (a > 0) return 1;\n  - return a + 2;"))

    def test_lets_bugs_share_a_place(self):
        code = planted("  in a.cc\n  - a + 2\n  + 3", "  in a.cc\n  - a + 2\n  + 4")
        self.assertIn("(bug0 ? (3) : bug1 ? (4) : (a +\n         2))", code)

    def test_lets_a_place_lie_in_another(self):
        code = planted("  in a.cc\n  - return a + 2;", "  in a.cc\n  - a + 2\n  + 4")
        self.assertIn("{ if (bug0) {  } else { return (bug1 ? (4) : (a +\n         2)); } }", code)

    def test_leaves_everything_else_as_it_is(self):
        code = planted("  in a.cc\n  - return 2;\n  + return 3;")
        self.assertEqual(CODE, code.replace("{ if (bug0) { return 3; } else { return 2; } }", "return 2;"))


class Complaints(unittest.TestCase):
    def refused(self, *changes):
        with self.assertRaises(tool.Mistake) as caught:
            planted(*changes)
        return str(caught.exception)

    def test_text_that_is_gone(self):
        complaint = self.refused("  in a.cc\n  - a + 7\n  + 1")
        self.assertEqual("bug-0 no longer applies: found 0 times in a.cc: a + 7", complaint)

    def test_text_that_stands_twice(self):
        complaint = self.refused("  in a.cc\n  - a > 0\n  + true")
        self.assertIn("bug-0 no longer applies: found 2 times", complaint)

    def test_a_block_that_is_gone(self):
        complaint = self.refused("  in a.cc int third(\n  - a\n  + b")
        self.assertIn("a.cc does not hold once: int third(", complaint)

    def test_changes_that_overlap(self):
        across = "  in a.cc\n  - 2; } int second(int a) {\n  + ;"
        self.assertIn("overlap", self.refused("  in a.cc\n  - return a + 2;", across))

    def test_a_bug_without_a_sentence(self):
        with self.assertRaises(tool.Mistake):
            tool.read_bugs("bug\n  in a.cc\n  - 2;")

    def test_a_name_that_is_given_twice(self):
        with self.assertRaises(tool.Mistake):
            tool.read_bugs("bug\n  One.\n  in a.cc\n  - 1;\nbug\n  Two.\n  in a.cc\n  - 2;")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-q"])
