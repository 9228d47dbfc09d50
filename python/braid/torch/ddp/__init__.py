# SPDX-License-Identifier: Apache-2.0
"""Gradients of DistributedDataParallel, handed to the daemons as planned tensors."""
