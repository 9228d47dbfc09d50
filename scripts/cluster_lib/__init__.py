# SPDX-License-Identifier: Apache-2.0
"""The parts of scripts/cluster: an emulated cluster on one machine."""
