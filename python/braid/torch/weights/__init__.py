# SPDX-License-Identifier: Apache-2.0
"""Parameters whose weights the daemons keep and update."""
