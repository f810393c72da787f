# SPDX-License-Identifier: Apache-2.0
"""The model and the optimizer of the program as the engine sees them: one flat vector in a fixed order (layout), its memory
and devices (memory), the rule that updates it (optimizers), what else travels to joiners (state, schedule), all of it as
the engine's callbacks (trained). Thread: the run's.
"""
