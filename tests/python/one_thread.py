# SPDX-License-Identifier: Apache-2.0
"""Imported before torch: processes of this interpreter compute on one thread."""

import os

os.environ["OMP_NUM_THREADS"] = "1"
