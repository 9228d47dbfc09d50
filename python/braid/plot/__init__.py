# SPDX-License-Identifier: Apache-2.0
"""Pictures of what braidctl and the benchmarks print as JSON, and of the demo.

`braid-plot` is the command. Drawing needs matplotlib, which only `braid.plot.page` and `braid.plot.panels` import.
"""
