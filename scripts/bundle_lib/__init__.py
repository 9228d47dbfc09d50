# SPDX-License-Identifier: Apache-2.0
"""How programs are moved to another machine: the wheel, and the folder that bench/gpu measures with."""
