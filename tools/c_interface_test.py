#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proves that the site's page of the C interface has every function."""
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent / "site"))
import c_interface  # noqa: E402


class CInterface(unittest.TestCase):
    def test_has_every_function(self):
        page, names = c_interface.page(), c_interface.functions()
        self.assertGreater(len(names), 30)
        self.assertEqual([name for name in names if f'id="{name}"' not in page], [])


if __name__ == "__main__":
    unittest.main()
