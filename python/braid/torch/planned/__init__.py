# SPDX-License-Identifier: Apache-2.0
"""Planned tensors: tensors of which the daemons decide, by a plan, which ones are reduced together."""
