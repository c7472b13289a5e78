# One function a kind of target, so that every folder's CMakeLists.txt is two lines.
include_guard()

set(NIBBLE_WARNINGS -Wall -Wextra -Werror -Wno-missing-field-initializers)

function(nibble_flags target)
  target_compile_options(${target} PRIVATE ${NIBBLE_WARNINGS})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  if(NIBBLE_SANITIZE)
    # GCC 12 warns of std::regex falsely under AddressSanitizer (GCC bug 105562).
    target_compile_options(${target} PRIVATE -fsanitize=${NIBBLE_SANITIZE} -fno-sanitize-recover=all
                                             -fno-omit-frame-pointer $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
    target_link_options(${target} PRIVATE -fsanitize=${NIBBLE_SANITIZE})
  endif()
endfunction()

# nibble_library(NAME [DEPENDS target...]): static library nibble_NAME from this folder's *.cpp.
function(nibble_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  if(sources)
    add_library(nibble_${name} STATIC ${sources})
    nibble_flags(nibble_${name})
    target_link_libraries(nibble_${name} PUBLIC tl::expected ${ARG_DEPENDS})
  else()
    add_library(nibble_${name} INTERFACE)
    target_link_libraries(nibble_${name} INTERFACE tl::expected ${ARG_DEPENDS})
  endif()
endfunction()

# nibble_test(NAME [DEPENDS target...] [SOURCES file...] [TIMEOUT seconds]): tests/unit/NAME/*.cpp or tests/NAME/*.cpp, and
# SOURCES, as one GoogleTest executable.
function(nibble_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;ENVIRONMENT" "DEPENDS;SOURCES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/unit/${name}/*.cpp
                                      ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(test_${name} ${sources} ${ARG_SOURCES})
  nibble_flags(test_${name})
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(test_${name} PRIVATE
    NIBBLE_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data" NIBBLE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    NIBBLE_BINARY_DIR="${PROJECT_BINARY_DIR}")
  target_link_libraries(test_${name} PRIVATE ${ARG_DEPENDS} GTest::gmock GTest::gtest_main)
  include(GoogleTest)
  gtest_discover_tests(test_${name} DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT "${ARG_ENVIRONMENT}")
endfunction()
