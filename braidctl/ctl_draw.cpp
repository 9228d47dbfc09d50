// SPDX-License-Identifier: Apache-2.0
#include "braidctl/ctl_draw.h"

#include <CLI/CLI.hpp>

#include "base/read_file.h"
#include "braidctl/figure_file.h"

namespace braid {
namespace {

constexpr size_t kFigureBytesMax = size_t{16} << 20;

}  // namespace

CLI::App* add_draw_command(CLI::App& app, DrawCommand& command) {
  CLI::App* sub =
      app.add_subcommand("draw", "a chart as SVG: bars, lines or spans that a file describes");
  sub->add_option("FIGURE", command.figure_path, "the figure, as JSON (docs/figures.md)")
      ->required();
  return sub;
}

Result<CommandOutput> run_draw(const DrawCommand& command) {
  const auto text = read_file(command.figure_path, kFigureBytesMax);
  if (!text) return text.status();
  const auto figure = parse_figure(*text, command.figure_path);
  if (!figure) return figure.status();
  return CommandOutput{figure_svg(*figure), {}};
}

}  // namespace braid
