# SPDX-License-Identifier: Apache-2.0
"""What a trainer hears from its environment, and what it says to its launcher and its user."""
