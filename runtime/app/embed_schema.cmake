# Writes verdict_schema.h: the JSON Schema as a string constant.
file(READ ${INPUT} text)
file(WRITE ${OUTPUT} "// Generated from runtime/verdict.schema.json.\n#pragma once\n#include <string_view>\nnamespace reflex::app {\ninline constexpr std::string_view kVerdictSchema = R\"schema(${text})schema\";\n}\n")
