# SPDX-License-Identifier: Apache-2.0
"""bench/gpu: two ranks on one GPU, over braid, NCCL and gloo, between two emulated nodes."""
