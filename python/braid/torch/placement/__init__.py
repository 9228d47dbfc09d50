# SPDX-License-Identifier: Apache-2.0
"""Work of each step that one rank does for all: Muon's, Shampoo's, SOAP's.

- homes: which rank computes which tensor, and how results come to the others
- optimizer: an optimizer whose parameters are updated at their homes
"""
