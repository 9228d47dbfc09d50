# SPDX-License-Identifier: Apache-2.0
"""Operations of a process group: through the arena to the daemon, and back."""
