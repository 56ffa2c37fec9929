# Writes a source file that contains FOLDER/*.toml for an explicit list of names. It defines the function
# embedded_FOLDER(), which base/file.h declares.
#
#   sluice_embed(clusters abci generic)      # OUTPUT: embedded_clusters.cc in the binary folder

function(sluice_embed folder)
  set(rows "")
  foreach(name IN LISTS ARGN)
    set(file "${PROJECT_SOURCE_DIR}/${folder}/${name}.toml")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(READ "${file}" text)
    string(APPEND rows "    {\"${name}\", R\"toml(${text})toml\"},\n")
  endforeach()
  set(head "#include \"base/file.h\"\n\nnamespace sluice::base {\nnamespace {\n\n")
  string(APPEND head "constexpr EmbeddedFile kFiles[] = {\n")
  set(tail "};\n\n}  // namespace\n\n")
  string(APPEND tail "std::span<const EmbeddedFile> embedded_${folder}() { return kFiles; }\n\n")
  string(APPEND tail "}  // namespace sluice::base\n")
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/embedded_${folder}.cc"
       CONTENT "${head}${rows}${tail}" @ONLY)
endfunction()
