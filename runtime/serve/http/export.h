// Export of all explanations of a period, page by page: memory is one verdict, however long it is.
#pragma once

#include <memory>

#include "runtime/serve/http/exchange.h"
#include "runtime/serve/store.h"

namespace reflex::serve {

/// One verdict a line (reflex.verdict/1), in the order in which they were given.
std::shared_ptr<BodyStream> export_lines(Store& store, const VerdictFilter& filter);
/// A POSIX ustar archive: for each verdict INCIDENT/REVISION-ID.json and .md, and at the end
/// COUNT.txt, which a reader takes as the sign that nothing is missing.
std::shared_ptr<BodyStream> export_tar(Store& store, const VerdictFilter& filter);

}  // namespace reflex::serve
