# The store and the HTTP side of the daemon. reflex_store has no HTTP, reflex_serve_http no engine
# but through port.h.
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
file(GLOB store_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/runtime/serve/store*.cpp)
add_library(reflex_store STATIC ${store_sources})
target_link_libraries(reflex_store PUBLIC reflex_flags reflex_abi PkgConfig::SQLITE
  nlohmann_json::nlohmann_json)

# Files that are served are compiled in; their names are those of routes_pages.cpp.
set(EMBEDDED ${CMAKE_CURRENT_BINARY_DIR}/generated/runtime/serve/http/embedded_files.h)
set(served ${CMAKE_CURRENT_SOURCE_DIR}/runtime/serve)
set(served_files ${served}/http/openapi.json ${served}/console/index.html
  ${served}/console/console.js ${served}/console/console.css)
add_custom_command(OUTPUT ${EMBEDDED}
  COMMAND ${CMAKE_COMMAND} -DOUTPUT=${EMBEDDED}
    "-DFILES=kOpenapiJson=${served}/http/openapi.json;kConsoleHtml=${served}/console/index.html;kConsoleJs=${served}/console/console.js;kConsoleCss=${served}/console/console.css"
    -P ${served}/http/embed_files.cmake
  DEPENDS ${served_files} ${served}/http/embed_files.cmake VERBATIM)

pkg_check_modules(HTTPLIB REQUIRED IMPORTED_TARGET cpp-httplib)
file(GLOB http_sources CONFIGURE_DEPENDS ${served}/http/*.cpp)
add_library(reflex_serve_http STATIC ${http_sources} ${served}/metrics_page.cpp ${EMBEDDED})
target_include_directories(reflex_serve_http PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/generated)
target_link_libraries(reflex_serve_http PUBLIC reflex_store reflex_engine reflex_explain
  nlohmann_json::nlohmann_json OpenSSL::SSL OpenSSL::Crypto PRIVATE PkgConfig::HTTPLIB ZLIB::ZLIB
  PkgConfig::ZSTD)
