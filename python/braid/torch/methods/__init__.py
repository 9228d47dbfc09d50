# SPDX-License-Identifier: Apache-2.0
"""Optimizers over braid: what is exchanged, and when."""
