// The tables of the store and how an older file becomes today's.
//
// Versions count up in PRAGMA user_version; each step is one transaction. A step that was released
// is never edited: what is wrong with it is put right by the next one (store_schema_test.cpp holds
// files of every version). A file of a later version is refused.
#pragma once

#include <cstdint>

#include "runtime/base/result.h"
#include "runtime/serve/store_sqlite.h"

namespace reflex::serve {

/// Source: chosen; "Rflx" in ASCII, so that `file` and we know the file from other databases.
inline constexpr int64_t kStoreApplicationId = 0x52666c78;

int64_t store_version();
/// Brings the tables to store_version(); returns the version that was found (0: a new file).
Result<int64_t> bring_up_to_date(Connection& connection);

}  // namespace reflex::serve
