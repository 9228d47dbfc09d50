# SPDX-License-Identifier: Apache-2.0
"""What is changed in torch so that scripts get braid."""
