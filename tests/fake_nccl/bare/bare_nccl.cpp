// SPDX-License-Identifier: Apache-2.0
// A libnccl.so.2 that only says its version.

extern "C" int ncclGetVersion(int* version) {
  *version = BARE_NCCL_VERSION;
  return 0;
}
