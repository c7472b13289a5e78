# Script: writes OUTPUT (a .cpp with the version and the git state of SOURCE_DIR) where it changes.
# Sources that are no git checkout have the sha "unknown".
set(sha unknown)
set(dirty false)
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND ${GIT} --no-optional-locks -C ${SOURCE_DIR} rev-parse HEAD
                  OUTPUT_VARIABLE head RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT failed AND head MATCHES "^[0-9a-f]+$")
    set(sha ${head})
    execute_process(COMMAND ${GIT} --no-optional-locks -C ${SOURCE_DIR} status --porcelain --untracked-files=no
                    OUTPUT_VARIABLE changes RESULT_VARIABLE failed ERROR_QUIET)
    if(failed OR NOT changes STREQUAL "")
      set(dirty true)
    endif()
  endif()
endif()

file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[
// SPDX-License-Identifier: Apache-2.0
#include "cli/build_info.h"

namespace nibble {

const char* version_text() { return "@VERSION@"; }
GitState git_state() { return {"@sha@", @dirty@}; }

}  // namespace nibble
]] @ONLY)
