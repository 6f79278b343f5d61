# `cpack -G DEB` in the build folder makes the Debian package; `cmake --install` the same files.
include(GNUInstallDirs)
# A package needs the program and its pages, not the tests: build `reflex` and `manuals` first.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(PACKAGING ${CMAKE_CURRENT_SOURCE_DIR}/runtime/serve/packaging)
install(TARGETS reflex RUNTIME DESTINATION bin)
install(DIRECTORY rules/std rules/fleet DESTINATION share/reflex/rules)
install(DIRECTORY hwprofiles DESTINATION share/reflex)
install(FILES ${PACKAGING}/reflex.toml DESTINATION /etc/reflex)
install(FILES ${PACKAGING}/reflex.service DESTINATION /lib/systemd/system)
# Manual pages, compressed as Debian wants them: two come from the binary, so that they cannot be stale.
set(MANUALS ${CMAKE_CURRENT_BINARY_DIR}/manuals)
file(MAKE_DIRECTORY ${MANUALS})
add_custom_command(OUTPUT ${MANUALS}/reflex.1.gz ${MANUALS}/reflex.toml.5.gz ${MANUALS}/reflex-serve.8.gz
  COMMAND $<TARGET_FILE:reflex> help --manual > ${MANUALS}/reflex.1
  COMMAND $<TARGET_FILE:reflex> config manual > ${MANUALS}/reflex.toml.5
  COMMAND ${CMAKE_COMMAND} -E copy ${PACKAGING}/reflex-serve.8 ${MANUALS}/reflex-serve.8
  COMMAND ${CMAKE_COMMAND} -E copy ${PACKAGING}/changelog ${MANUALS}/changelog
  COMMAND gzip -9nf ${MANUALS}/reflex.1 ${MANUALS}/reflex.toml.5 ${MANUALS}/reflex-serve.8 ${MANUALS}/changelog
  DEPENDS reflex ${PACKAGING}/reflex-serve.8 ${PACKAGING}/changelog VERBATIM)
add_custom_target(manuals ALL DEPENDS ${MANUALS}/reflex.1.gz)
install(FILES ${MANUALS}/reflex.1.gz DESTINATION share/man/man1)
install(FILES ${MANUALS}/reflex.toml.5.gz DESTINATION share/man/man5)
install(FILES ${MANUALS}/reflex-serve.8.gz DESTINATION share/man/man8)
install(FILES ${MANUALS}/changelog.gz ${PACKAGING}/copyright DESTINATION share/doc/reflex)
install(FILES ${PACKAGING}/prometheus-alerts.yaml ${PACKAGING}/grafana-dashboard.json
  ${PACKAGING}/kubernetes.yaml DESTINATION share/reflex)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME reflex)
set(CPACK_PACKAGE_CONTACT "Reflex maintainers <maintainers@users.noreply.a-seed-c0e6a9ba.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "names the faulty node of a training cluster from its events")
set(CPACK_PACKAGE_DESCRIPTION "Reads the events and logs of a cluster that trains models, and says for
each job that hung, failed or slowed down which node is at fault, or that
none is, with a probability and an explanation whose numbers sum to it.
A daemon, a command line, packs of rules.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_PACKAGE_DEPENDS passwd)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "systemd")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PACKAGING}/postinst ${PACKAGING}/prerm)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/conffiles "/etc/reflex/reflex.toml\n")
list(APPEND CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_BINARY_DIR}/conffiles)
include(CPack)
