#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proves that tools/release refuses what is no release, and takes its commit back when a step fails."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.dont_write_bytecode = True
for name in [name for name in os.environ if name.startswith("GIT_")]:
    del os.environ[name]  # in a hook of git they name the repository that called it
TOOL = Path(__file__).resolve().parent / "release"
CHANGELOG = "# Changelog\n\n## Unreleased\n\n### Added\n\n- A demo.\n\n## [0.1.0] - 2026-01-01\n\n- All.\n"
BUILT = [
    ("wheels", ["bash", "-c", "touch dist/tradewind-0.2.0-py3-none-manylinux_2_28_{x86_64,aarch64}.whl"]),
    ("rest", ["bash", "-c", "touch dist/tradewind{-0.2.0.tar.gz,-oci.tar,_0.2.0_amd64.deb}"]),
    ("site", ["sh", "-c", "mkdir -p build/site && touch build/site/index.html"]),
]


def load():
    loader = importlib.machinery.SourceFileLoader("release", str(TOOL))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("release", loader))
    loader.exec_module(module)
    return module


class Release(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        self.tool = load()
        self.tool.STEPS, self.tool.PACKAGES = BUILT, []
        as_root = mock.patch.object(self.tool.os, "geteuid", return_value=0)
        self.euid = as_root.start()
        self.addCleanup(as_root.stop)
        self.git("init", "-q")
        for name, value in (("user.name", "a"), ("user.email", "a@example.org"), ("commit.gpgsign", "false")):
            self.git("config", name, value)
        self.write(".gitignore", "/dist/\n/build/\n")
        self.write("CMakeLists.txt", "project(tradewind VERSION 0.1.0 LANGUAGES C CXX)\n")
        self.write("CHANGELOG.md", CHANGELOG)
        self.commit()

    def git(self, *words):
        done = subprocess.run(["git", *words], cwd=self.root, check=True, capture_output=True, text=True)
        return done.stdout

    def write(self, path, text):
        (self.root / path).parent.mkdir(exist_ok=True)
        (self.root / path).write_text(text)

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "-q", "-m", "Work")

    def release(self, version="0.2.0", **how):
        """(exit code, what was said)"""
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = self.tool.release(self.root, version, **how)
        return code, said.getvalue()

    def refuses(self, words, version="0.2.0", **how):
        before = self.git("rev-parse", "HEAD")
        code, said = self.release(version, **how)
        self.assertEqual((2, 1), (code, said.count("\n")), said)
        self.assertIn(words, said)
        self.assertEqual(before, self.git("rev-parse", "HEAD"))

    def test_refuses_what_is_no_newer_version(self):
        for version in ("", "1", "v0.2.0", "0.2", "0.02.0", "0.2.0-rc1", "0.2.0\n"):
            self.refuses("expected MAJOR.MINOR.PATCH", version)
        for version in ("0.1.0", "0.0.9"):
            self.refuses("expected one newer than 0.1.0", version)
        self.git("tag", "v0.10.0")
        self.refuses("expected one newer than 0.10.0", "0.9.0")

    def test_refuses_another_user_than_root(self):
        self.euid.return_value = 1000
        self.refuses("run this as root")

    def test_packages_that_cannot_be_had_leave_all_as_it_was(self):
        self.tool.PACKAGES = ["packages.txt"]
        self.write("tools/setup.sh", "#!/bin/sh\nexit 1\n")
        (self.root / "tools/setup.sh").chmod(0o755)
        self.commit()
        before = self.git("rev-parse", "HEAD")
        self.assertEqual((2, before), (self.release()[0], self.git("rev-parse", "HEAD")))

    def test_refuses_a_dirty_tree(self):
        self.write("new.txt", "")
        self.refuses("1 files differ from the last commit (new.txt, ...)")

    def test_refuses_an_empty_changelog(self):
        for text in (CHANGELOG.replace("- A demo.\n", ""), CHANGELOG.replace("## Unreleased\n", "")):
            self.write("CHANGELOG.md", text)
            self.commit()
            self.refuses("nothing stands under '## Unreleased'")

    def test_a_release_closes_the_changelog_and_commits(self):
        code, said = self.release()
        self.assertEqual(0, code, said)
        self.assertEqual("Release 0.2.0\n", self.git("log", "-1", "--format=%s"))
        self.assertEqual("", self.git("status", "--porcelain"))
        self.assertIn("VERSION 0.2.0 LANGUAGES", (self.root / "CMakeLists.txt").read_text())
        changelog = (self.root / "CHANGELOG.md").read_text()
        self.assertRegex(changelog, r"## Unreleased\n\n## \[0\.2\.0\] - [\d-]{10}\n\n### Added\n\n- A demo")
        self.assertEqual("### Added\n\n- A demo.\n", (self.root / "build/release/notes.md").read_text())
        self.assertEqual(3, said.count("ok      "), said)
        self.assertIn("git tag -a v0.2.0", said)
        self.assertEqual(6, len((self.root / "dist/SHA256SUMS").read_text().splitlines()))
        self.refuses("expected one newer than 0.2.0")

    def test_a_step_that_fails_takes_the_commit_back(self):
        before = self.git("rev-parse", "HEAD")
        self.tool.STEPS = [("bad", ["sh", "-c", "echo why; exit 3"]), *BUILT]
        code, said = self.release()
        self.assertEqual(1, code)
        self.assertRegex(said, r"FAILED +bad: sh -c .* \(\d+ s\)")
        self.assertIn("why\n", said)
        self.assertEqual(before, self.git("rev-parse", "HEAD"))
        self.assertEqual("", self.git("status", "--porcelain"))

    def test_a_commit_that_git_refuses_leaves_both_files_as_they_were(self):
        before = self.git("rev-parse", "HEAD")
        self.write(".git/hooks/pre-commit", "#!/bin/sh\necho no such format >&2\nexit 1\n")
        (self.root / ".git/hooks/pre-commit").chmod(0o755)
        code, said = self.release()
        self.assertEqual(1, code)
        self.assertIn("no such format", said)
        self.assertEqual((before, ""), (self.git("rev-parse", "HEAD"), self.git("status", "--porcelain")))

    def test_a_commit_of_somebody_else_is_not_taken_back(self):
        theirs = "echo more >>notes; git add notes; git commit -q -m Theirs"
        for last in ("false", "true"):
            self.tool.STEPS = [*BUILT, ("theirs", ["sh", "-c", f"{theirs}; {last}"])]
            code, said = self.release(f"0.{2 if last == 'false' else 3}.0")
            self.assertEqual(1, code)
            self.assertIn("stays (HEAD is another commit by now): git revert ", said)
            self.assertEqual("Theirs\n", self.git("log", "-1", "--format=%s"))
            self.write("CHANGELOG.md", CHANGELOG)
            self.commit()

    def test_a_step_that_changes_the_tree_is_no_release(self):
        for file in ("new.txt", "CMakeLists.txt"):
            self.tool.STEPS = [*BUILT, ("writes", ["sh", "-c", f"echo more >>{file}"])]
            code, said = self.release()
            self.assertEqual(1, code)
            self.assertIn(file, said)
            (self.root / "new.txt").unlink(missing_ok=True)
        self.assertIn("its commit", said)
        self.assertIn("git revert ", said)

    def test_ctrl_c_takes_the_commit_back(self):
        before = self.git("rev-parse", "HEAD")
        with mock.patch.object(self.tool, "passes", side_effect=KeyboardInterrupt):
            self.assertRaises(KeyboardInterrupt, self.release)
        self.assertEqual(before, self.git("rev-parse", "HEAD"))

    def test_what_is_missing_or_old_in_dist_is_no_release(self):
        self.tool.STEPS = BUILT[1:]
        code, said = self.release()
        self.assertEqual(1, code)
        self.assertIn("tradewind-0.2.0-py3-none-manylinux_2_28_aarch64.whl is missing", said)
        self.tool.STEPS = [*BUILT, ("more", ["touch", "dist/tradewind-0.1.0.tar.gz"])]
        self.assertIn("tradewind-0.1.0.tar.gz is not of this release", self.release()[1])

    def test_a_dry_run_changes_nothing(self):
        before = self.git("rev-parse", "HEAD")
        code, said = self.release(dry_run=True)
        self.assertEqual((0, before), (code, self.git("rev-parse", "HEAD")))
        self.assertIn("tradewind-0.2.0.tar.gz", said)
        self.assertFalse((self.root / "dist").exists())

    def test_a_tag_is_built_as_it_is(self):
        self.refuses("v0.2.0 is no tag of this commit", tagged=True)
        self.release()
        self.git("tag", "v0.2.0")
        before = self.git("rev-parse", "HEAD")
        self.assertEqual((0, before), (self.release(tagged=True)[0], self.git("rev-parse", "HEAD")))
        self.tool.STEPS = [("bad", ["false"])]
        self.assertEqual((1, before), (self.release(tagged=True)[0], self.git("rev-parse", "HEAD")))


if __name__ == "__main__":
    unittest.main(verbosity=0)
