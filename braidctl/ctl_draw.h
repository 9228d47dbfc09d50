// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "braidctl/command.h"

namespace braid {

// `braidctl draw`: a figure that other tools describe, as SVG.
struct DrawCommand {
  std::string figure_path;
};

CLI::App* add_draw_command(CLI::App& app, DrawCommand& command);
Result<CommandOutput> run_draw(const DrawCommand& command);

}  // namespace braid
