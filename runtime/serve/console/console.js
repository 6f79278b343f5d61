// The console: one page over the API. No library, no build step, nothing from elsewhere.
//
// Text from the daemon reaches the page as text nodes only. Explanation pages are made by the daemon
// (escaped there) and taken over as parsed elements; the page's policy runs no script of theirs.
'use strict';

const view = document.getElementById('view');
const live = document.getElementById('live');
let token = sessionStorage.getItem('reflex-token') || '';

// ---------------------------------------------------------------- small things

/** el('p', {class: 'x'}, 'text', child, ..) */
function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, '');
    else if (value !== false && value != null) node.setAttribute(key, value);
  }
  node.append(...children.flat(3).filter((c) => c != null));
  return node;
}

function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

const percent = (p) => (p == null ? '-' : `${(100 * p).toFixed(p > 0.995 && p < 1 ? 1 : 0)} %`);
const number = (x) => (x == null ? '-' : Number(x.toPrecision(4)).toLocaleString('en'));
const when = (text) => (text ? el('time', {datetime: text}, text.replace('T', ' ').replace(/\.\d+Z$/, 'Z')) : '-');
const verdictLink = (id, text) => el('a', {href: `#/verdict/${encodeURIComponent(id)}`}, text);
const nodeLink = (name) => el('a', {href: `#/nodes/${encodeURIComponent(name)}`}, name);

function answerText(v) {
  if (v.answer === 'nodes' || (v.culprits && v.culprits.length)) return `${v.culprits.join(', ')} ${v.level}`;
  if (v.external) return `external: ${v.external}`;
  return v.level === 'undetermined' ? 'undetermined' : 'no faulty node';
}

function facts(pairs) {
  return el('dl', {class: 'facts'}, pairs.filter(([, v]) => v != null && v !== '')
    .map(([k, v]) => [el('dt', {}, k), el('dd', {}, v)]));
}

/** A table whose first column is its row headers. */
function table(caption, heads, rows) {
  return el('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption},
    el('table', {}, el('caption', {}, caption),
      el('thead', {}, el('tr', {}, heads.map((h) => el('th', {scope: 'col'}, h)))),
      el('tbody', {}, rows.map((cells) => el('tr', {}, cells.map((c, i) =>
        i === 0 ? el('th', {scope: 'row'}, c) : el('td', {}, c == null ? '-' : c)))))));
}

function tell(text) { document.getElementById('news').textContent = text; }

// ---------------------------------------------------------------- asking the daemon

class ApiError extends Error {
  constructor(status, body) {
    super((body && body.error) || `HTTP ${status}`);
    this.status = status;
    this.advice = (body && body.what_to_do) || '';
    this.body = body;
  }
}

async function ask(path, options = {}) {
  const headers = {...(options.headers || {})};
  if (token) headers.Authorization = `Bearer ${token}`;
  const reply = await fetch(path, {...options, headers});
  if (reply.status === 401) {
    await askToken(token ? 'The daemon does not know this token.' : 'This daemon has tokens.');
    return ask(path, options);
  }
  if (!reply.ok) throw new ApiError(reply.status, await reply.json().catch(() => null));
  return reply;
}
const json = async (path, options) => (await ask(path, options)).json();
const post = (path, body, method = 'POST') => json(path, {
  method, headers: body ? {'Content-Type': 'application/json'} : {}, body: body && JSON.stringify(body)});

let asking = null;
function askToken(why) {
  asking = asking || new Promise((done) => {
    const dialog = document.getElementById('token-dialog');
    document.getElementById('token-why').textContent = why;
    document.getElementById('token-form').onsubmit = () => {
      token = document.getElementById('token').value.trim();
      sessionStorage.setItem('reflex-token', token);
      asking = null;
      done();
    };
    dialog.oncancel = (event) => event.preventDefault();
    dialog.showModal();
  });
  return asking;
}

function failure(error) {
  return el('div', {class: 'warn', role: 'alert'}, el('p', {}, error.message),
    error.advice ? el('p', {}, error.advice) : null);
}

// ---------------------------------------------------------------- views

function incidentCard(incident, heading) {
  const v = incident.latest;
  const best = (v.nodes && v.nodes[0]) || null;
  return el('li', {class: incident.final ? 'card' : 'card open'},
    el(heading, {}, verdictLink(v.id, answerText(v))),
    el('p', {}, `${incident.job || 'no job'}: ${incident.type}${v.symptom ? `, ${v.symptom}` : ''}`),
    best ? el('p', {}, `${best.fault || 'fault unknown'} on `, nodeLink(best.node), `, ${percent(best.p)}`) : null,
    el('p', {class: 'soft'}, incident.final ? 'closed, opened ' : 'open since ', when(incident.opened),
      `, revision ${incident.revision}, ${incident.incident}`));
}

async function showIncidents() {
  const {incidents} = await json('api/v1/incidents?state=all&limit=60');
  const open = incidents.filter((i) => !i.final);
  const closed = incidents.filter((i) => i.final);
  return [el('h1', {}, open.length === 1 ? '1 open incident' : `${open.length} open incidents`),
    open.length ? el('ul', {class: 'cards', id: 'open'}, open.map((i) => incidentCard(i, 'h2')))
      : el('p', {class: 'good'}, 'No job hangs, fails or slows down.'),
    el('h2', {}, 'Closed'),
    closed.length ? el('ul', {class: 'cards'}, closed.map((i) => incidentCard(i, 'h3'))) : el('p', {}, 'None is stored.')];
}

/** The explanation page's content: answer, evidence graph, timeline of nodes, contributions. */
async function explanation(id) {
  const reply = await ask(`api/v1/verdicts/${encodeURIComponent(id)}/explanation?as=html`);
  // Its own style sheet is refused by the policy; the console's holds the same rules.
  const text = (await reply.text()).replace(/<style>[\s\S]*?<\/style>/, '');
  const page = new DOMParser().parseFromString(text, 'text/html');
  let count = 0;
  const parts = [...page.querySelector('main').children].map((node) => document.importNode(node, true));
  for (const part of parts) {
    for (const scroller of part.matches('.scroll') ? [part] : part.querySelectorAll('.scroll')) {
      scroller.setAttribute('tabindex', '0');
      scroller.setAttribute('role', 'region');
      const caption = scroller.querySelector('caption, title');
      scroller.setAttribute('aria-label', `${caption ? caption.textContent : 'Drawing'}, part ${count += 1}`);
    }
  }
  return parts;
}

async function showVerdict(id) {
  const verdict = await json(`api/v1/verdicts/${encodeURIComponent(id)}`);
  const incident = encodeURIComponent(verdict.incident);
  const [parts, {verdicts}, given] = await Promise.all([explanation(id),
    json(`api/v1/verdicts?incident=${incident}&order=oldest`), json(`api/v1/feedback?incident=${incident}`)]);
  const newest = verdicts[verdicts.length - 1].verdict;
  const revisions = el('p', {}, 'Revisions: ', verdicts.flatMap(({verdict: v}, i) => [i ? ', ' : '',
    v.id === id ? el('strong', {}, `${v.revision}${v.final ? ' (final)' : ''}`)
      : verdictLink(v.id, `${v.revision}${v.final ? ' (final)' : ''}`)]));
  const nodes = el('p', {}, 'Nodes: ', (verdict.nodes || []).flatMap((n, i) => [i ? ', ' : '', nodeLink(n.node)]));
  return [...parts.slice(0, 2),
    newest.id === id ? null : el('p', {class: 'warn'}, 'There is a newer revision: ', verdictLink(newest.id, answerText(newest))),
    feedbackForm(verdict, given.feedback), revisions, nodes, ...parts.slice(2)];
}

function feedbackForm(verdict, given) {
  const said = el('p', {role: 'status'}, given.length
    ? `Last word: ${given[0].confirmed ? 'right' : `wrong, it was ${given[0].culprits.join(', ') || 'no node'}`} (${given[0].by})` : '');
  const culprits = el('input', {id: 'culprits', size: 24, 'aria-describedby': 'culprits-hint'});
  const comment = el('input', {id: 'comment', size: 40});
  const send = async (body) => {
    try {
      await post('api/v1/feedback', {incident: verdict.incident, verdict: verdict.id, comment: comment.value, ...body});
      said.textContent = 'Thank you: it is kept, and learned.';
    } catch (error) {
      said.textContent = `Not kept: ${error.message}. ${error.advice || ''}`;
    }
  };
  const names = () => culprits.value.split(/[\s,]+/).filter(Boolean);
  return el('fieldset', {}, el('legend', {}, 'Was it right?'),
    el('p', {}, el('button', {type: 'button', id: 'right', onclick: () => send({confirmed: true})}, 'Right'), ' ',
      el('button', {type: 'button', id: 'wrong', onclick: () => send({confirmed: false, culprits: names()})}, 'Wrong')),
    el('p', {}, el('label', {for: 'culprits'}, 'If wrong, it was'), culprits, ' ',
      el('span', {id: 'culprits-hint', class: 'soft'}, 'nodes; empty for no node')),
    el('p', {}, el('label', {for: 'comment'}, 'Comment'), comment), said);
}

async function showNodes() {
  const input = el('input', {id: 'prefix', type: 'search', size: 24});
  const list = el('div', {role: 'status'});
  const search = async () => {
    try {
      const found = await json(`api/v1/entities?limit=200&prefix=${encodeURIComponent(input.value)}`);
      list.replaceChildren(el('p', {}, found.more ? 'The first 200 nodes' : `${found.entities.length} nodes`),
        table('Nodes', ['node', 'class'], found.entities.map((n) => [nodeLink(n.node), n.class])));
    } catch (error) { list.replaceChildren(failure(error)); }
  };
  input.addEventListener('input', search);
  await search();
  return [el('h1', {}, 'Nodes'), el('p', {}, el('label', {for: 'prefix'}, 'Name begins with'), input), list];
}

async function showNode(name) {
  const id = encodeURIComponent(name);
  const [node, state] = await Promise.all([json(`api/v1/entities/${id}`), json(`api/v1/entities/${id}/state`)]);
  const hazard = node.hazard || {factor: 1};
  return [el('h1', {}, name),
    facts([['class', node.class], ['cohort', node.cohort], ['job', node.job], ['in maintenance', node.in_maintenance ? 'yes' : ''],
      ['last repair', node.last_repair ? when(node.last_repair) : ''],
      ['failure odds', `x${number(hazard.factor)}${hazard.origin ? ` (${hazard.origin})` : ', no history of its own'}`],
      ...Object.entries(node.labels || {})]),
    el('h2', {}, 'History'),
    node.verdicts.length ? table('Final verdicts that list this node', ['incident', 'time', 'answer', 'this node'],
      node.verdicts.map((v) => [verdictLink(v.id, v.incident), when(v.ts), answerText(v),
        v.culprits.includes(name) ? v.level : 'not at fault'])) : el('p', {}, 'No verdict lists it.'),
    el('h2', {}, 'Recent evidence'),
    state.episodes.length ? table('Signals that hold or held lately', ['signal', 'entity', 'since', 'until', 'firings', 'value'],
      state.episodes.map((e) => [e.signal, e.entity, when(e.onset), when(e.end), number(e.firings), number(e.value)]))
      : el('p', {}, 'None.'),
    el('h2', {}, 'Longitudinal features'),
    state.features.length ? table('Values now', ['feature', 'entity', 'value', 'window, s'],
      state.features.map((f) => [f.feature, f.entity, number(f.value), number(f.window_s || f.half_life_s)]))
      : el('p', {}, 'None has state for it.')];
}

/** What the healthy nodes of a class show (share of samples at or below x), the threshold in force, the author's default. */
function baseline(p) {
  const points = p.baseline.quantiles;
  const all = [...points.map(([, x]) => x), p.value, p.settings.default].filter((x) => x != null);
  const low = Math.min(...all);
  const span = Math.max(...all) - low || 1;
  const x = (v) => 40 + 520 * (v - low) / span;
  const y = (q) => 100 - 80 * q;
  const curve = points.map(([q, v]) => `${x(v)},${y(q)}`).join(' ');
  const label = (at, height, text) => Object.assign(svg('text', {x: at, y: height, 'text-anchor': at > 300 ? 'end' : 'start', class: 'soft'}), {textContent: text});
  const mark = (v, cls, text, height) => v == null ? [] : [svg('line', {x1: x(v), x2: x(v), y1: 16, y2: 104, class: cls}), label(x(v), height, text)];
  const title = `${p.parameter}: in force ${number(p.value)} ${p.unit}, default ${number(p.settings.default)}, median of the class ${
    number((points.find(([q]) => q === 0.5) || [])[1])}, ${number(p.baseline.samples)} samples`;
  return svg('svg', {viewBox: '0 0 600 134', width: 600, role: 'img', 'aria-label': title},
    svg('line', {x1: 40, x2: 560, y1: y(0.5), y2: y(0.5), class: 'axis'}), label(4, y(0.5) + 4, '50 %'), label(4, y(1) + 4, '100 %'),
    svg('polygon', {points: `${x(points[0][1])},100 ${curve} ${x(points[points.length - 1][1])},100`, class: 'density'}),
    svg('line', {x1: 40, x2: 560, y1: 100, y2: 100, class: 'axis'}),
    label(x(points[0][1]), 116, number(points[0][1])),
    ...mark(p.settings.default, 'default', `default ${number(p.settings.default)}`, 128),
    ...mark(p.value, 'limit', `in force ${number(p.value)} ${p.unit}`, 12));
}

const originWords = {parent: 'parent profile', class: 'class', node: 'node', fleet: 'fleet'};

function parameter(p, hwClass) {
  const where = p.origin.where ? `${p.origin.where.file}:${p.origin.where.line}` : '';
  if (!p.baseline) return null;
  const origin = p.origin.from === 'profile' ? `the profile's default (fewer than ${p.settings.min_samples} samples)`
    : `quantile ${p.origin.quantile} of the ${originWords[p.origin.from]}, ${number(p.origin.samples)} samples${p.origin.clamped ? ', held by floor or ceiling' : ''}`;
  return el('li', {class: 'card'}, el('h3', {}, p.parameter),
    el('p', {}, `${number(p.value)} ${p.unit}: ${origin}`),
    p.baseline.quantiles.length ? el('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': `Baseline of ${p.parameter}, ${hwClass}`}, baseline(p))
      : el('p', {class: 'soft'}, 'Nothing is measured yet.'),
    el('p', {class: 'soft'}, `from ${p.feature}, ${where}`));
}

async function showClasses() {
  const data = await json('api/v1/thresholds');
  const classes = data.classes.filter((c) => !c.abstract);
  return [el('h1', {}, 'Hardware classes'), el('p', {class: 'soft'}, `Table of thresholds, version ${data.table_version}`),
    data.shifts.length ? table('Baselines that moved as a whole', ['class', 'what', 'when', 'factor'],
      data.shifts.map((s) => [s.class, s.what, when(s.at), `x${number(s.factor)}`])) : null,
    ...classes.flatMap((c) => [el('h2', {}, c.class),
      el('ul', {class: 'cards wide'}, c.parameters.map((p) => parameter(p, c.class))),
      table(`All parameters of ${c.class}`, ['parameter', 'value', 'unit', 'origin'], c.parameters.map((p) => [p.parameter,
        p.value == null ? '-' : String(p.value), p.unit, p.origin.where && p.origin.from === 'profile'
          ? `${p.origin.where.file}:${p.origin.where.line}` : p.origin.from]))])];
}

function reloadAnswer(answer) {
  if (!answer) return el('p', {class: 'soft'}, 'No reload since the start.');
  const changed = answer.plan.filter((r) => r.fate !== 'kept');
  return el('div', {}, el('p', {class: answer.error ? 'warn' : 'good'}, answer.error || (answer.unchanged ? 'Unchanged: the same bytes.'
      : `Swapped: compiled in ${number(answer.compile_ms)} ms, no event evaluated for ${number(answer.pause_us)} µs.`),
      answer.what_to_do ? `; ${answer.what_to_do}.` : ''),
    answer.diagnostics.map((d) => el('pre', {tabindex: 0, role: 'region', 'aria-label': 'Diagnostic'}, typeof d === 'string' ? d
      : `${d.file}:${d.range ? `${d.range.start.line}:${d.range.start.col}: ` : ' '}${d.severity || 'error'}: ${d.message} [${d.id}]`)),
    answer.plan.length ? table(`State: ${answer.plan.length - changed.length} kept, ${changed.length} changed`, ['name', 'kind', 'fate', 'why', 'bytes'],
      changed.map((r) => [r.name, r.kind, r.fate, r.why, number(r.bytes)])) : null);
}

async function showPacks() {
  const [packs, status, shadow] = await Promise.all([json('api/v1/packs'), json('api/v1/status'), json('api/v1/shadow')]);
  const result = el('div', {role: 'status'}, reloadAnswer(status.reload.answer));
  const button = el('button', {type: 'button', id: 'reload', onclick: async () => {
    button.disabled = true;
    result.replaceChildren(el('p', {}, 'Compiling ..'));
    try { result.replaceChildren(reloadAnswer(await post('-/reload'))); }
    catch (error) { result.replaceChildren(error.body && error.body.plan ? reloadAnswer(error.body) : failure(error)); }
    button.disabled = false;
  }}, 'Reload packs');
  return [el('h1', {}, 'Packs'),
    status.reload.last_ok ? null : el('p', {class: 'warn'}, 'The last reload failed; the set below stays in force.'),
    facts([['set', el('code', {}, packs.set_sha256)], ['backend', packs.backend], ['signals', number(packs.counts.signals)],
      ['causes', number(packs.counts.causes)], ['rules', number(packs.counts.rules)],
      ['reloads', `${status.reload.ok} good, ${status.reload.failed} failed`], ['last', status.reload.last ? when(status.reload.last) : '']]),
    table('Packs in force', ['pack', 'version', 'sha256'], packs.packs.map((p) => [p.name, p.version, el('code', {}, p.sha256.slice(0, 12))])),
    packs.overlay_changes.length ? table('Overlays', ['overlay', 'change', 'effect'], packs.overlay_changes.map((c) => [c.overlay, c.change, c.inert ? 'none' : 'in force'])) : null,
    el('h2', {}, 'Last reload'), el('p', {}, button), result,
    el('h2', {}, 'Shadow'), ...shadowSaid(shadow)];
}

/** What the candidate set answers otherwise than the one in force. */
function shadowSaid(shadow) {
  if (!shadow.running) return [el('p', {class: 'soft'}, 'No candidate set runs beside the live one.')];
  const {since, same, open, incidents, firings} = shadow.differs;
  const answer = (words) => words ?? el('span', {class: 'soft'}, 'no final verdict');
  return [facts([['set', el('code', {}, shadow.set_sha256)], ['compared since', since ? when(since) : 'the first event'], ['incidents open', number(shadow.incidents_open)],
    ['same answers', number(same)], ['final in one of them only so far', number(open)], ['other answers', number(incidents.length)]]),
    incidents.length ? table('Answers that differ', ['incident', 'job', 'live', 'shadow'], incidents.map((x) => [
      x.live_verdict ? verdictLink(x.live_verdict, x.incident) : x.incident, x.job, answer(x.live), answer(x.shadow)])) : null,
    firings.length ? table('Signals that fired another number of times', ['signal', 'live', 'shadow'], firings.map((x) => [x.signal, number(x.live), number(x.shadow)])) : null];
}

async function showFlow() {
  const s = await json('api/v1/status');
  return [el('h1', {}, 'Sources and sinks'),
    s.ready ? null : el('p', {class: 'warn'}, `Not ready: ${s.not_ready_because}`),
    facts([['events', number(s.live.events)], ['late', number(s.live.late)], ['watermark', when(s.live.watermark)], ['keys', number(s.live.keys)],
      ['state', `${number(s.live.state_bytes / 1e6)} MB`], ['journal', `${number(s.journal.bytes / 1e6)} MB`],
      ['snapshot', s.snapshot.last ? when(s.snapshot.last) : 'none yet'], ['snapshot error', s.snapshot.error],
      ['verdicts stored', s.verdicts && number(s.verdicts.stored)], ['version', s.version]]),
    table('Sources', ['source', 'lines', 'rejected', 'newest', 'lag, s', 'queue, bytes', 'state'], s.sources.map((x) => [x.name, number(x.lines),
      number(x.rejected), when(x.newest), number(x.lag_s), number(x.queue_bytes), x.idle ? 'idle' : 'active'])),
    s.sinks.length ? table('Sinks', ['sink', 'waiting', 'delivered', 'failed', 'dropped', 'last error'], s.sinks.map((x) => [x.name,
      number(x.queued), number(x.delivered), number(x.failed), number(x.dropped), x.last_error])) : el('p', {}, 'No sink is configured.'),
    Object.keys(s.live.rejected_by_reason).length ? table('Input that made no event', ['reason', 'lines'],
      Object.entries(s.live.rejected_by_reason).map(([k, v]) => [k, number(v)])) : null];
}

// ---------------------------------------------------------------- routing

const views = {incidents: [showIncidents, 'Incidents'], verdict: [showVerdict, 'Verdict'], nodes: [(n) => (n ? showNode(n) : showNodes()), 'Nodes'],
  classes: [showClasses, 'Classes'], packs: [showPacks, 'Packs'], flow: [showFlow, 'Sources and sinks']};
let turn = 0;

/** Shows what the address names. `quiet`: an update, so focus and scroll stay. */
async function show(quiet = false) {
  const [name, argument] = location.hash.replace(/^#\//, '').split('/');
  const key = views[name] ? name : 'incidents';
  const mine = ++turn;
  for (const link of document.querySelectorAll('nav a')) {
    const here = link.dataset.view === key || (key === 'verdict' && link.dataset.view === 'incidents');
    if (here) link.setAttribute('aria-current', 'page'); else link.removeAttribute('aria-current');
  }
  let content;
  try { content = await views[key][0](argument === undefined ? undefined : decodeURIComponent(argument)); }
  catch (error) { content = [el('h1', {}, views[key][1]), failure(error)]; }
  if (mine !== turn) return;  // another view was asked for meanwhile
  const focused = quiet && view.contains(document.activeElement) && document.activeElement.getAttribute('href');
  view.replaceChildren(...content.flat().filter((c) => c != null));
  // An update must not throw a keyboard user out of the list.
  if (focused) for (const link of view.querySelectorAll('a')) if (link.getAttribute('href') === focused) { link.focus(); break; }
  view.dataset.shown = key;
  const title = view.querySelector('h1');
  document.title = `${title ? title.textContent : views[key][1]} - Reflex`;
  if (!quiet) view.focus();
}

// ---------------------------------------------------------------- following

let lastId = '';
let refresh = 0;

function heard(block) {
  let data = '';
  for (const line of block.split('\n')) {
    if (line.startsWith('id: ')) lastId = line.slice(4);
    if (line.startsWith('data: ')) data += line.slice(6);
  }
  if (!data) return;
  const verdict = JSON.parse(data);
  tell(`${verdict.final ? 'Final verdict' : 'Verdict'} for ${verdict.job || verdict.incident}: ${answerText(verdict)}`);
  // Many verdicts at once make one update; forms that somebody fills in are left alone.
  clearTimeout(refresh);
  refresh = setTimeout(() => { if (view.dataset.shown === 'incidents') show(true); }, 300);
}

/** EventSource cannot send a token, so the stream is read by fetch. */
async function follow() {
  for (let wait = 500; ; wait = Math.min(2 * wait, 15000)) {
    try {
      const reply = await ask('api/v1/verdicts/stream', {headers: lastId ? {'Last-Event-ID': lastId} : {}});
      const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
      live.dataset.state = 'on';
      live.textContent = 'following live';
      wait = 500;
      for (let text = ''; ;) {
        const {value, done} = await reader.read();
        if (done) break;
        text += value;
        for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2)) heard(text.slice(0, end));
      }
    } catch { /* the daemon restarts, or the network is away: come again */ }
    live.dataset.state = 'lost';
    live.textContent = 'connection lost, trying again';
    await new Promise((done) => { setTimeout(done, wait); });
  }
}

addEventListener('hashchange', () => show());
show(true);
follow();
