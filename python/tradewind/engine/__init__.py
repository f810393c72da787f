# SPDX-License-Identifier: Apache-2.0
"""libtradewind.so as Python sees it: its structures and calls (abi), a peer of a run (peer), what is set for it (settings),
and the checkpoints that it writes. Nothing here knows a model; tensors are addresses with a count and a dtype.
"""
