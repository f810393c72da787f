# SPDX-License-Identifier: Apache-2.0
"""python -m tradewind.demo: four processes train one model, one is killed, another joins.

All end with identical parameters. digits.txt says whose digits they learn.
"""
