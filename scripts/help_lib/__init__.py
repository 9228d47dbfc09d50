# SPDX-License-Identifier: Apache-2.0
"""What man pages are made from: the programs' own help."""
