# SPDX-License-Identifier: Apache-2.0
"""What happens between two batches. A program takes batches and calls step() (styles) on the peer (life) that its process
is (process). Orders of the engine (driver) become gradients of counted samples (loop).
Thread: the one that started the run.
"""
