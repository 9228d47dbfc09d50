# SPDX-License-Identifier: Apache-2.0
"""torch.distributed's process group over braid, and how its ranks find each other."""
