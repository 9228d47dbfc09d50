// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace braid {

// What the page is made of: the files of src/web/page, which the build puts into the program.
struct PageFile {
  std::string_view path;  // "/page.js"; of page.html "/"
  std::string_view content_type;
  std::string_view content;
};
std::span<const PageFile> page_files();

}  // namespace braid
