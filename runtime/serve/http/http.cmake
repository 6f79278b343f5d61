# The store and the HTTP side of the daemon. reflex_store has no HTTP, reflex_serve_http no engine
# but through port.h.
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
file(GLOB store_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/runtime/serve/store*.cpp)
add_library(reflex_store STATIC ${store_sources})
target_link_libraries(reflex_store PUBLIC reflex_flags reflex_abi PkgConfig::SQLITE
  nlohmann_json::nlohmann_json)
