// Style sheet of the page. Colours are variables with a light and a dark set; both keep a contrast
// of at least 4.5:1 for text (Source: WCAG 2.2, success criterion 1.4.3).
#include "runtime/explain/html_parts.h"

namespace reflex::explain {

std::string_view page_style() {
  return R"css(
:root { color-scheme: light dark;
  --bg: #ffffff; --fg: #1b1f24; --soft: #57606a; --line: #d0d7de; --panel: #f6f8fa;
  --for: #b42318; --against: #1a7f37; --prior: #6639ba; --grey: #6e7781; --mark: #0550ae; }
@media (prefers-color-scheme: dark) { :root {
  --bg: #0d1117; --fg: #e6edf3; --soft: #9da7b3; --line: #30363d; --panel: #161b22;
  --for: #ff8a80; --against: #56d364; --prior: #d2a8ff; --grey: #9aa4af; --mark: #79c0ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem 1.25rem 3rem; max-width: 76rem; background: var(--bg);
  color: var(--fg); font: 16px/1.5 system-ui, sans-serif; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: .5rem; background: var(--bg); padding: .5rem; z-index: 1; }
:focus-visible { outline: 3px solid var(--mark); outline-offset: 2px; }
h1 { font-size: 1.5rem; margin: .5rem 0; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1rem 0 .25rem; }
.answer { font-size: 1.2rem; margin: .25rem 0 1rem; padding: .75rem 1rem; background: var(--panel);
  border-left: 6px solid var(--against); overflow-wrap: anywhere; }
.answer.bad { border-color: var(--for); }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0; }
dl.facts dt { color: var(--soft); }
dl.facts dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; }
caption { text-align: left; color: var(--soft); padding: .25rem 0; }
th, td { text-align: left; vertical-align: top; padding: .25rem .5rem;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.bar { min-width: 11rem; }
code { font: .85em ui-monospace, monospace; overflow-wrap: anywhere; }
svg { max-width: none; height: auto; display: block; }
svg text { fill: var(--fg); font: 12px system-ui, sans-serif; }
svg .soft { fill: var(--soft); }
svg .box { fill: var(--panel); stroke: var(--line); }
svg .lead { stroke: var(--for); stroke-width: 2; }
svg .edge { fill: none; }
svg .for { stroke: var(--for); } svg .against { stroke: var(--against); }
svg .none { stroke: var(--grey); }
svg .silent { stroke-dasharray: 6 4; } svg .away { stroke-dasharray: 2 4; stroke: var(--prior); }
svg .suppressed { stroke-dasharray: 10 3 2 3; stroke: var(--grey); }
svg .unobserved { stroke-dasharray: 1 6; stroke: var(--grey); }
svg .fill-for { fill: var(--for); } svg .fill-against { fill: var(--against); }
svg .fill-prior { fill: var(--prior); } svg .axis { stroke: var(--line); }
svg .opening { stroke: var(--mark); stroke-width: 2; }
details { margin: .5rem 0; border: 1px solid var(--line); border-radius: 6px; padding: .25rem .75rem; }
summary { cursor: pointer; font-weight: 600; overflow-wrap: anywhere; }
ul { margin: .25rem 0; padding-left: 1.25rem; }
.soft { color: var(--soft); }
@media print { details > * { display: block; } body { max-width: none; } }
)css";
}

}  // namespace reflex::explain
