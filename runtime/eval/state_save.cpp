// SignalEngine::save: see signal_engine.h. (stub of the first minutes)
#include "runtime/eval/signal_engine.h"

namespace reflex::eval {
void SignalEngine::save(StateWriter&) const {}
bool SignalEngine::load(StateReader&, std::vector<StateFate>*) { return false; }
int64_t SignalEngine::incomplete_until(abi::SignalId) const { return INT64_MIN; }
}  // namespace reflex::eval
