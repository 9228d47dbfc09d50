# SPDX-License-Identifier: Apache-2.0
"""The version of the package, which pyproject.toml reads as well. scripts/version sets it, with all other places."""

__version__ = "0.1.0"
