# SPDX-License-Identifier: Apache-2.0
"""python -m tradewind.demo: four processes train one model, one is killed, another joins, and all end alike.

digits.gz has 1,797 handwritten digits, each 8 x 8 values from 0 to 16 and the digit: the test set of "Optical
Recognition of Handwritten Digits" by E. Alpaydin and C. Kaynak (1998, UCI Machine Learning Repository, CC BY 4.0).
"""
