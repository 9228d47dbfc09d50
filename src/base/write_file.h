// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/status.h"

namespace braid {

// Who may read a file: whom the umask allows, or its owner alone.
enum class FileReaders { AsUmask, Owner };

// Makes `path` hold `content`, whatever it held. Errors begin with the path; a full disk is one.
Status write_file(const std::string& path, const std::string& content,
                  FileReaders readers = FileReaders::AsUmask);

// Makes the folder, and those above it, where they are missing: for their owner alone. What goes
// wrong shows when something is written there.
void make_private_folder(const std::string& path);

}  // namespace braid
