// The evidence graph as SVG: three layers, causes -> signals -> entities.
//
// Layout: the causes stand in the order of the verdict; signals, then entities, are sorted by the
// weighted mean position of what they hang on (one barycentre pass), which keeps most edges from
// crossing. Ties by name, so the same verdict gives the same drawing.
#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "runtime/explain/escape.h"
#include "runtime/explain/html_parts.h"
#include "runtime/explain/story.h"
#include "runtime/explain/verdict_words.h"

namespace reflex::explain {
namespace {

// Why: a drawing of more is a hairball; the tables below it hold all of them.
constexpr size_t kCausesMax = 4;
constexpr size_t kSignalsPerCauseMax = 7;
constexpr size_t kNotCountedMax = 4;
constexpr double kBoxWidth = 260;
constexpr double kBoxHeight = 34;
constexpr double kRowStep = 46;
constexpr double kColumnStep = 370;
constexpr size_t kLabelChars = 36;
// Why: 12 nats are certainty; a wider edge would only hide its neighbours.
constexpr double kEdgeWidthMax = 12;

struct Box {
  std::string name;
  std::string label;
  std::string note;
  bool is_lead = false;
  double order = 0;   // sum of position * weight of its edges from the left
  double weight = 0;  // sum of their weights
  double y = 0;
};

struct Edge {
  std::string from;
  std::string to;
  std::string style;  // class of the line
  std::string words;  // for the title
  double nats = 0;
};

class Drawing {
 public:
  explicit Drawing(const abi::Verdict& v) : verdict_(v) {
    const abi::Hypothesis* first = lead(v);
    if (first && first->what != abi::Hypothesis::What::kNone) add_cause(*first, true);
    for (const auto& h : v.hypotheses) {
      if (&h == first || h.what == abi::Hypothesis::What::kNone) continue;
      if (causes_.size() >= kCausesMax) break;
      add_cause(h, false);
    }
    place();
  }

  [[nodiscard]] bool empty() const { return causes_.empty(); }
  [[nodiscard]] std::string svg() const;

 private:
  void add_cause(const abi::Hypothesis& h, bool is_lead);
  void add_term(const std::string& cause, const abi::Contribution& c);
  void add_not_counted(const std::string& cause, const std::string& signal,
                       const std::string& entity, const std::string& style,
                       const std::string& words);
  void explain_arcs(const abi::Hypothesis& h);
  Box& signal_box(const std::string& name);
  Box& entity_box(const std::string& name);
  void place();
  static void stack(std::map<std::string, Box>& boxes);
  static void pull(std::map<std::string, Box>& right, const std::vector<Edge>& edges,
                   const std::map<std::string, double>& left);
  [[nodiscard]] std::string summary() const;

  const abi::Verdict& verdict_;
  std::vector<Box> causes_;
  std::map<std::string, Box> signals_;   // by name
  std::map<std::string, Box> entities_;  // by name
  std::vector<Edge> to_signal_;          // cause -> signal
  std::vector<Edge> to_entity_;          // signal -> entity
  std::vector<Edge> arcs_;               // signal -> signal that it explains away
};

Box& Drawing::signal_box(const std::string& name) {
  Box& box = signals_[name];
  box.name = name;
  box.label = short_name(name);
  return box;
}

Box& Drawing::entity_box(const std::string& name) {
  Box& box = entities_[name];
  box.name = box.label = name;
  return box;
}

void Drawing::add_cause(const abi::Hypothesis& h, bool is_lead) {
  Box box;
  box.name = title(h);
  box.label = short_name(h.cause) + " on " + h.entity;
  box.note = percent(h.p);
  box.is_lead = is_lead;
  causes_.push_back(box);
  std::vector<const abi::Contribution*> terms;
  for (const auto& c : h.contributions) terms.push_back(&c);
  std::stable_sort(terms.begin(), terms.end(), [](const auto* a, const auto* b) {
    return std::abs(a->nats) > std::abs(b->nats);
  });
  if (terms.size() > kSignalsPerCauseMax) terms.resize(kSignalsPerCauseMax);
  for (const auto* c : terms) add_term(box.name, *c);
  for (size_t i = 0; i < std::min(h.suppressed.size(), kNotCountedMax); ++i) {
    const auto& s = h.suppressed[i];
    add_not_counted(box.name, s.signal, s.entity, "suppressed", "suppressed: " + s.by);
  }
  for (size_t i = 0; i < std::min(h.unobserved.size(), kNotCountedMax); ++i) {
    const auto& u = h.unobserved[i];
    add_not_counted(box.name, u.signal, u.entity, "unobserved", "unobserved: " + u.reason);
  }
  explain_arcs(h);
}

void Drawing::add_term(const std::string& cause, const abi::Contribution& c) {
  signal_box(c.signal);
  entity_box(c.entity);
  const std::string side = c.nats > 0 ? "for" : c.nats < 0 ? "against" : "none";
  const std::string state(word(c.state));
  to_signal_.push_back({cause, c.signal, side + " " + state,
                        cause + " to " + c.signal + ": " + nats_text(c.nats) + " nats, " + state,
                        c.nats});
  for (Edge& e : to_entity_) {
    if (e.from != c.signal || e.to != c.entity) continue;
    if (std::abs(c.nats) > std::abs(e.nats)) e.nats = c.nats;
    return;
  }
  to_entity_.push_back(
      {c.signal, c.entity, "none " + state, reason(c, verdict_.opened_ns), c.nats});
}

void Drawing::add_not_counted(const std::string& cause, const std::string& signal,
                              const std::string& entity, const std::string& style,
                              const std::string& words) {
  signal_box(signal);
  entity_box(entity);
  to_signal_.push_back({cause, signal, style, cause + " to " + signal + ": 0 nats, " + words, 0});
  to_entity_.push_back({signal, entity, style, signal + " on " + entity + ", " + words, 0});
}

/// An arc from the parent signal where the drawing has it; the entity's edge is marked anyway.
void Drawing::explain_arcs(const abi::Hypothesis& h) {
  for (size_t i = 0; i < std::min(h.explained_away.size(), kNotCountedMax); ++i) {
    const auto& e = h.explained_away[i];
    signal_box(e.signal);
    entity_box(e.entity);
    const std::string words = e.signal + " on " + e.entity + " explained away by " + e.by + ": " +
                              nats_text(-e.nats_lost) + " nats";
    const std::string parent = e.by.substr(0, e.by.find(" on "));
    for (const auto& [name, box] : signals_) {
      if (name != e.signal && (name == parent || short_name(name) == parent)) {
        arcs_.push_back({name, e.signal, "away", words, e.nats_lost});
        break;
      }
    }
    to_entity_.push_back({e.signal, e.entity, "away", words, e.nats_lost});
  }
}

void Drawing::stack(std::map<std::string, Box>& boxes) {
  std::vector<Box*> order;
  for (auto& [name, box] : boxes) order.push_back(&box);
  std::stable_sort(order.begin(), order.end(), [](const Box* a, const Box* b) {
    const auto at = [](const Box* x) { return x->weight > 0 ? x->order / x->weight : 1e9; };
    return at(a) < at(b);
  });
  for (size_t i = 0; i < order.size(); ++i) order[i]->y = static_cast<double>(i) * kRowStep;
}

void Drawing::pull(std::map<std::string, Box>& right, const std::vector<Edge>& edges,
                   const std::map<std::string, double>& left) {
  for (const Edge& e : edges) {
    const auto from = left.find(e.from);
    const auto to = right.find(e.to);
    if (from == left.end() || to == right.end()) continue;
    const double weight = std::abs(e.nats) + 0.1;  // edges without weight still pull a little
    to->second.order += from->second * weight;
    to->second.weight += weight;
  }
}

void Drawing::place() {
  std::map<std::string, double> at;
  for (size_t i = 0; i < causes_.size(); ++i) {
    causes_[i].y = static_cast<double>(i) * kRowStep;
    at[causes_[i].name] = causes_[i].y;
  }
  pull(signals_, to_signal_, at);
  stack(signals_);
  at.clear();
  for (const auto& [name, box] : signals_) at[name] = box.y;
  pull(entities_, to_entity_, at);
  stack(entities_);
}

std::string Drawing::summary() const {
  std::string out = std::to_string(causes_.size()) + " causes, " + std::to_string(signals_.size()) +
                    " signals, " + std::to_string(entities_.size()) + " entities. ";
  for (const Edge& e : to_signal_) {
    if (e.nats != 0) out += e.words + ". ";
  }
  return out;
}

std::string box_svg(const Box& b, double x, double top) {
  const double y = top + b.y;
  std::string label = html(shortened(b.label, b.note.empty() ? kLabelChars : kLabelChars - 7));
  std::string out = "<g><title>" + html(b.name + (b.note.empty() ? "" : ", " + b.note)) +
                    "</title><rect class=\"box" + (b.is_lead ? " lead" : "") + "\" rx=\"6\" x=\"" +
                    px(x) + "\" y=\"" + px(y) + "\" width=\"" + px(kBoxWidth) + "\" height=\"" +
                    px(kBoxHeight) + "\"/><text x=\"" + px(x + 10) + "\" y=\"" + px(y + 21) +
                    "\">" + label + "</text>";
  if (!b.note.empty()) {
    out += "<text class=\"soft\" text-anchor=\"end\" x=\"" + px(x + kBoxWidth - 10) + "\" y=\"" +
           px(y + 21) + "\">" + html(b.note) + "</text>";
  }
  return out + "</g>\n";
}

std::string edge_svg(const Edge& e, double x0, double y0, double x1, double y1) {
  const double middle = (x0 + x1) / 2;
  return "<path class=\"edge " + html(e.style) + "\" stroke-width=\"" +
         px(std::clamp(std::abs(e.nats), 1.0, kEdgeWidthMax)) + "\" d=\"M" + px(x0) + " " + px(y0) +
         " C" + px(middle) + " " + px(y0) + " " + px(middle) + " " + px(y1) + " " + px(x1) + " " +
         px(y1) + "\"><title>" + html(e.words) + "</title></path>\n";
}

std::string Drawing::svg() const {
  constexpr double kTop = 34;
  const size_t rows = std::max({causes_.size(), signals_.size(), entities_.size()});
  const double height = kTop + static_cast<double>(rows) * kRowStep + 6;
  const double width = 2 * kColumnStep + kBoxWidth + 20;
  const double x[3] = {10, 10 + kColumnStep, 10 + 2 * kColumnStep};
  std::string out = "<svg role=\"img\" aria-labelledby=\"graph-t graph-d\" width=\"" + px(width) +
                    "\" height=\"" + px(height) + "\" viewBox=\"0 0 " + px(width) + " " +
                    px(height) +
                    "\">\n<title id=\"graph-t\">Evidence graph</title><desc id=\"graph-d\">" +
                    html(summary()) + "</desc>\n";
  const char* heads[3] = {"causes", "signals", "entities"};
  for (int i = 0; i < 3; ++i) {
    out += "<text class=\"soft\" x=\"" + px(x[i] + 10) + "\" y=\"18\">" + heads[i] + "</text>\n";
  }
  std::map<std::string, double> cause_y;
  for (const Box& b : causes_) cause_y[b.name] = b.y;
  const double half = kTop + kBoxHeight / 2;
  for (const Edge& e : to_signal_) {
    out += edge_svg(e, x[0] + kBoxWidth, half + cause_y[e.from], x[1], half + signals_.at(e.to).y);
  }
  for (const Edge& e : to_entity_) {
    out += edge_svg(e, x[1] + kBoxWidth, half + signals_.at(e.from).y, x[2],
                    half + entities_.at(e.to).y);
  }
  for (const Edge& e : arcs_) {  // within the column: a curve that bulges to the right
    const double y0 = half + signals_.at(e.from).y;
    const double y1 = half + signals_.at(e.to).y;
    const double edge = x[1] + kBoxWidth;
    out += "<path class=\"edge away\" stroke-width=\"2\" d=\"M" + px(edge) + " " + px(y0) + " C" +
           px(edge + 60) + " " + px(y0) + " " + px(edge + 60) + " " + px(y1) + " " + px(edge) +
           " " + px(y1) + "\"><title>" + html(e.words) + "</title></path>\n";
  }
  for (const Box& b : causes_) out += box_svg(b, x[0], kTop);
  for (const auto& [name, b] : signals_) out += box_svg(b, x[1], kTop);
  for (const auto& [name, b] : entities_) out += box_svg(b, x[2], kTop);
  return out + "</svg>\n";
}

}  // namespace

std::string evidence_graph(const abi::Verdict& v) {
  const Drawing drawing(v);
  if (drawing.empty()) return "<p>No hypothesis but \"no faulty node\" is listed.</p>\n";
  return "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"evidence graph\">\n" +
         drawing.svg() +
         "</div>\n<p class=\"soft\">Edge width: nats. Solid: fired. Dashed: silent. Dotted: "
         "explained "
         "away. Dash-dot: suppressed. Sparse dots: unobserved. The thick frame is the answer; the "
         "strongest signals of each cause are drawn, the tables below hold all of them.</p>\n";
}

}  // namespace reflex::explain
