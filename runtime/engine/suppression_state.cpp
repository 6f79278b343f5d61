// Maintenance spans as a saved state. Suppress statements are the pack's own.
#include <algorithm>

#include "runtime/engine/suppression.h"

namespace reflex::engine {

void Suppression::save(StateWriter& writer) const {
  std::vector<std::pair<std::string_view, SymbolId>> order;
  for (const auto& [node, spans] : spans_) order.emplace_back(pack_->symbols->name(node), node);
  std::sort(order.begin(), order.end());
  writer.begin("suppression");
  writer.u64(order.size());
  for (const auto& [name, node] : order) {
    const std::vector<Span>& spans = spans_.at(node);
    writer.symbol(node);
    writer.u64(spans.size());
    for (const Span& span : spans) {
      writer.i64(span.from_ns);
      writer.i64(span.to_ns);
      writer.flag(span.ended);
    }
  }
  writer.u64(unended_);
  writer.end();
}

void Suppression::load(StateReader& reader) {
  if (!reader.enter("suppression")) return;
  for (size_t left = reader.count(2); left > 0 && !reader.failed(); --left) {
    std::vector<Span> spans;
    const SymbolId node = reader.symbol();
    for (size_t i = reader.count(3); i > 0 && !reader.failed(); --i) {
      spans.push_back({reader.i64(), reader.i64(), reader.flag()});
    }
    if (spans.empty()) return reader.fail();  // end() looks at the last one
    spans_[node] = std::move(spans);
  }
  unended_ = reader.u64();
  reader.leave();
}

void Suppression::take_over(Suppression& old) {
  spans_ = std::move(old.spans_);
  orders_ = std::move(old.orders_);
  unended_ = old.unended_;
}

}  // namespace reflex::engine
