# SPDX-License-Identifier: Apache-2.0
"""What man pages and completions are made from: the programs' own help."""
