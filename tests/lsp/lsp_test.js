// Every feature of `reflex lsp` through a real client. usage: node lsp_test.js REFLEX SOURCE_DIR
//
// Prints what failed and, last, "N passed, N failed". Exit 77 (skipped) without the npm packages.
'use strict';

const assert = require('assert');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { spawn } = require('child_process');

try {
  require.resolve('vscode-languageserver-protocol');
} catch {
  console.log('SKIPPED: the npm packages of tests/lsp are missing; run: (cd tests/lsp && npm ci)');
  process.exit(77);
}
const { Client, uri, write, find, range, apply } = require('./client');

const [binary, sourceDir] = process.argv.slice(2);
let passed = 0;
let failed = 0;
async function test(name, body) {
  try {
    await body();
    passed += 1;
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${name}\n  ${(error.stack || String(error)).split('\n').slice(0, 12).join('\n  ')}`);
  }
}

// ---------------------------------------------------------------- the workspace: two roots
const base = fs.mkdtempSync(path.join(os.tmpdir(), 'reflex lsp '));  // a blank: URIs are encoded
const rules = path.join(base, 'rules');
const profiles = path.join(base, 'hwprofiles');
const KINDS = `pack t.kinds 1.0.0
# An error code of a GPU.
event gpu.xid {
  key node: node
  key gpu: gpu_index?
  code: u16
  sort: enum(hard, soft)
  temp: celsius?
}
event gpu.temp { key node: node  value: celsius }
# Codes that name hardware.
export list bad: set<u16> = [48, 63]
export macro is_bad(e: gpu.xid) = e.code in bad
`;
const SITE = `pack t.site 1.0.0
import t.kinds ^1 as k

# The GPU says so itself.
signal dead on node { e: gpu.xid where is_bad(e) and e.sort == hard } leak 1e-5 per hour
signal hot on node {
  when gpu.temp.value > profile.temp_hot
  for 2m
} leak 1e-4 per hour
feature xid_rate on node = rate(gpu.xid, 6h)
signal many on node within 1m {
  a: gpu.xid where a.code == 48
  then b: gpu.xid where b.code == a.code and xid_rate > 3 per hour
} leak 1e-5 per hour
fault broken on node { prior 1e-5 per job  severity critical  remedy drain }
broken causes dead, hot p 0.9 lag -30s .. 15m scope self
broken causes many p 0.5
incident stop on job { opens on incident.open  settle 30s }
`;
const TESTS = `test "dead 🔥" { nodes n1  at 1m: gpu.xid n1 code 48 sort hard  expect dead on n1 at 1m }
test "not dead" {
  nodes n1
  at 1m: gpu.xid n1 code 7 sort hard
  expect dead on n1
}
`;
const HW = `profile hw.base abstract { temp_hot: celsius = 83 within 60 .. 100 }
profile hw.big extends hw.base matches label gpu.product like "Big*" { temp_hot = 87 }
profile hw.unknown extends hw.base fallback { }
`;
write(rules, { 'kinds/pack.rfx': KINDS, 'site/pack.rfx': SITE, 'site/site_test.rfx': TESTS });
write(profiles, { 'hw.rfx': HW });
const kindsFile = path.join(rules, 'kinds/pack.rfx');
const siteFile = path.join(rules, 'site/pack.rfx');
const testFile = path.join(rules, 'site/site_test.rfx');
const hwFile = path.join(profiles, 'hw.rfx');

const labels = (result) => result.items.map((i) => i.label);
const item = (result, label) => result.items.find((i) => i.label === label);

async function main() {
  const c = new Client(binary);

  await test('a request before initialize is refused', async () => {
    assert.strictEqual((await c.refused('textDocument/hover', {})).code, -32002);
  });
  await test('initialize names what the server does', async () => {
    const { capabilities, serverInfo } = await c.initialize([rules, profiles]);
    assert.strictEqual(serverInfo.name, 'reflex');
    assert.strictEqual(capabilities.positionEncoding, 'utf-16');
    assert.strictEqual(capabilities.textDocumentSync.change, 2);
    for (const provider of ['hover', 'definition', 'references', 'documentSymbol', 'workspaceSymbol',
      'documentFormatting', 'documentRangeFormatting', 'foldingRange', 'inlayHint', 'callHierarchy']) {
      assert.strictEqual(capabilities[`${provider}Provider`], true, provider);
    }
  });
  await test('a second initialize, an unknown method and bad parameters are errors', async () => {
    assert.strictEqual((await c.refused('initialize', {})).code, -32600);
    assert.strictEqual((await c.refused('textDocument/nothing', {})).code, -32601);
    assert.strictEqual((await c.refused('textDocument/hover', {})).code, -32602);
    assert.strictEqual((await c.refused('textDocument/hover', [1, 2])).code, -32602);
    assert.strictEqual((await c.refused('textDocument/hover', c.at('/nowhere.rfx', { line: 0, character: 0 }))).code, -32602);
  });
  await test('the server asks to watch the files', async () => {
    await c.request('workspace/symbol', { query: '' });
    assert.strictEqual(c.registered[0].method, 'workspace/didChangeWatchedFiles');
  });

  // -------------------------------------------------------------- diagnostics
  await test('a clean workspace has no diagnostics', async () => {
    await c.open(siteFile, SITE);
    assert.deepStrictEqual(await c.until(siteFile, (d) => d.length === 0, 'none'), []);
    await c.open(testFile, TESTS);
    await c.until(testFile, (d) => d.length === 0, 'none');
  });
  await test('a mistake behind an emoji is at its UTF-16 column, with the fix', async () => {
    const broken = TESTS.replace('sort hard  expect', 'sortt hard  expect');
    await c.change(testFile, [{ range: range(TESTS, 'sort'), text: 'sortt' }]);
    const list = await c.until(testFile, (d) => d.length > 0, 'unknown field');
    assert.strictEqual(list.length, 1);
    assert.deepStrictEqual(list[0].range, range(broken, 'sortt'));
    assert.strictEqual(list[0].source, 'reflex');
    assert.strictEqual(list[0].severity, 1);
    assert.match(list[0].code, /^R\d{3}$/);
    assert.match(list[0].message, /did you mean 'sort'/);
    const actions = await c.request('textDocument/codeAction', {
      textDocument: { uri: uri(testFile) }, range: list[0].range, context: { diagnostics: list } });
    const fix = actions.find((a) => a.kind === 'quickfix');
    assert.strictEqual(apply(broken, fix.edit.changes[uri(testFile)]), TESTS);
    assert.strictEqual(fix.isPreferred, false);  // a guess: not among the safe ones
    assert.ok(!actions.some((a) => a.kind === 'source.fixAll'));
    await c.change(testFile, [{ text: TESTS }]);
    await c.until(testFile, (d) => d.length === 0, 'none');
  });
  await test('a note becomes related information in the other file', async () => {
    await c.change(siteFile, [{ text: SITE.replace('gpu.xid, 6h', 'gpu.xid.nope, 6h') }]);
    await c.until(siteFile, (d) => d.length > 0, 'unknown field');
    await c.change(siteFile, [{ text: `${SITE}signal dead on node { e: gpu.xid }\n` }]);
    const list = await c.until(siteFile, (d) => d.some((x) => x.relatedInformation), 'declared twice');
    const twice = list.find((x) => x.relatedInformation);
    assert.deepStrictEqual(twice.relatedInformation[0].location,
      { uri: uri(siteFile), range: range(SITE, 'dead') });
    await c.change(siteFile, [{ text: SITE }]);
    await c.until(siteFile, (d) => d.length === 0, 'none');
  });
  await test('behind a burst of changes the last text is told', async () => {
    for (let i = 0; i < 10; ++i) await c.change(siteFile, [{ text: `${SITE}signal s${i} on node { e: gpu.xidd }\n` }]);
    await c.until(siteFile, (d) => d.length > 0 && c.diagnostics.get(uri(siteFile)).version === c.versions.get(siteFile), 'unknown kind');
    await c.change(siteFile, [{ text: SITE }]);
    await c.until(siteFile, (d) => d.length === 0, 'none');
  });
  await test('a warning can be allowed on its line', async () => {
    const text = SITE.replace('feature xid_rate', 'list idle: set<u16> = [1]\nfeature xid_rate');
    await c.change(siteFile, [{ text }]);
    const list = await c.until(siteFile, (d) => d.some((x) => x.code === 'R201'), 'unused list');
    const actions = await c.request('textDocument/codeAction', {
      textDocument: { uri: uri(siteFile) }, range: list[0].range, context: { diagnostics: list } });
    const allow = actions.find((a) => a.title.startsWith('Allow R201'));
    await c.change(siteFile, [{ text: apply(text, allow.edit.changes[uri(siteFile)]) }]);
    await c.until(siteFile, (d) => d.length === 0, 'none');
    await c.change(siteFile, [{ text: SITE }]);
  });

  // -------------------------------------------------------------- hover
  const hover = async (file, position) => (await c.request('textDocument/hover', c.at(file, position)));
  await test('hover: a field with type and unit, a kind with its comment', async () => {
    const field = await hover(siteFile, find(SITE, 'gpu.temp.value', 0, 10));
    assert.match(field.contents.value, /field of `gpu\.temp`, type `celsius`, unit celsius/);
    assert.deepStrictEqual(field.range, range(SITE, 'value'));
    const kind = await hover(siteFile, find(SITE, 'gpu.xid', 0, 1));
    assert.match(kind.contents.value, /event gpu\.xid/);
    assert.match(kind.contents.value, /An error code of a GPU\./);
  });
  await test('hover: a parameter has its value per hardware class', async () => {
    const { contents } = await hover(siteFile, find(SITE, 'temp_hot', 0, 2));
    assert.match(contents.value, /\| hw\.big \| 87 \| hw\.big \|/);
    assert.match(contents.value, /\| hw\.unknown \| 83 \| hw\.base \|/);
    assert.match(contents.value, /within 60 \.\. 100/);
  });
  await test('hover: a signal with its costs, a macro, a function, a unit, nothing', async () => {
    const signal = await hover(siteFile, find(SITE, 'dead'));
    assert.match(signal.contents.value, /evidence for: broken/);
    assert.match(signal.contents.value, /bytes per key, horizon/);
    assert.match(signal.contents.value, /The GPU says so itself\./);
    assert.match((await hover(siteFile, find(SITE, 'is_bad'))).contents.value, /macro is_bad\(e: gpu\.xid\)/);
    assert.match((await hover(siteFile, find(SITE, 'rate(', 0, 1))).contents.value, /events, or the sum of a field/);
    assert.match((await hover(hwFile, find(HW, 'celsius', 0, 1)) || { contents: { value: 'unit' } }).contents.value, /unit/);
    assert.strictEqual(await hover(siteFile, { line: 2, character: 0 }), null);
    assert.strictEqual(await hover(siteFile, { line: 99999, character: 99999 }), null);
  });

  // -------------------------------------------------------------- definition, references, highlight
  await test('definition across packs and roots', async () => {
    const go = (p, file = siteFile) => c.request('textDocument/definition', c.at(file, p));
    assert.deepStrictEqual(await go(find(SITE, 'gpu.xid')), { uri: uri(kindsFile), range: range(KINDS, 'gpu.xid') });
    assert.deepStrictEqual(await go(find(SITE, 'temp_hot')), { uri: uri(hwFile), range: range(HW, 'temp_hot') });
    assert.deepStrictEqual(await go(find(SITE, 'e.sort', 0, 2)), { uri: uri(kindsFile), range: range(KINDS, 'sort') });
    const step = find(SITE, 'a: gpu.xid where');
    assert.deepStrictEqual(await go(find(SITE, '== a.code', 0, 3)),
      { uri: uri(siteFile), range: { start: step, end: { line: step.line, character: step.character + 1 } } });
    assert.deepStrictEqual(await go(find(TESTS, 'dead on'), testFile), { uri: uri(siteFile), range: range(SITE, 'dead') });
    assert.strictEqual(await go(find(SITE, 'incident.open')), null);  // builtin
  });
  await test('references over all files, with and without the declaration', async () => {
    const ask = (includeDeclaration) => c.request('textDocument/references',
      c.at(siteFile, find(SITE, 'dead'), { context: { includeDeclaration } }));
    const all = await ask(true);
    assert.deepStrictEqual(all, [
      { uri: uri(siteFile), range: range(SITE, 'dead', 0) },
      { uri: uri(siteFile), range: range(SITE, 'dead', 1) },
      { uri: uri(testFile), range: { start: find(TESTS, 'dead on'), end: find(TESTS, 'dead on', 0, 4) } },
      { uri: uri(testFile), range: { start: find(TESTS, 'dead on', 1), end: find(TESTS, 'dead on', 1, 4) } },
    ]);
    assert.strictEqual((await ask(false)).length, 3);
    const marks = await c.request('textDocument/documentHighlight', c.at(siteFile, find(SITE, 'dead')));
    assert.deepStrictEqual(marks.map((m) => m.kind), [3, 2]);
  });

  // -------------------------------------------------------------- rename
  const rename = (file, position, newName) => c.request('textDocument/rename', c.at(file, position, { newName }));
  await test('rename of a field over two packs, an emoji before it', async () => {
    const p = find(KINDS, 'sort');
    const prepared = await c.request('textDocument/prepareRename', c.at(kindsFile, p));
    assert.deepStrictEqual(prepared, { range: range(KINDS, 'sort'), placeholder: 'sort' });
    const { changes } = await rename(kindsFile, p, 'severity_of');
    assert.deepStrictEqual(Object.keys(changes).sort(), [uri(kindsFile), uri(siteFile), uri(testFile)].sort());
    assert.strictEqual(apply(KINDS, changes[uri(kindsFile)]), KINDS.replace('sort:', 'severity_of:'));
    assert.strictEqual(apply(SITE, changes[uri(siteFile)]), SITE.replace('e.sort', 'e.severity_of'));
    assert.strictEqual(apply(TESTS, changes[uri(testFile)]), TESTS.replaceAll('sort hard', 'severity_of hard'));
  });
  await test('rename of a dotted kind, a parameter, a step', async () => {
    const kind = await rename(siteFile, find(SITE, 'gpu.xid'), 'gpu.error');
    assert.strictEqual(apply(SITE, kind.changes[uri(siteFile)]), SITE.replaceAll('gpu.xid', 'gpu.error'));
    const param = await rename(siteFile, find(SITE, 'temp_hot'), 'temp_limit');
    assert.strictEqual(apply(HW, param.changes[uri(hwFile)]), HW.replaceAll('temp_hot', 'temp_limit'));
    const step = await rename(siteFile, find(SITE, 'a.code =='), 'first');
    assert.strictEqual(apply(SITE, step.changes[uri(siteFile)]),
      SITE.replace('a: gpu', 'first: gpu').replace('a.code == 48', 'first.code == 48').replace('== a.code', '== first.code'));
  });
  await test('a rename that collides or is no name is refused', async () => {
    for (const taken of ['hot', 'many', '9x', 'a b', '']) {
      const error = await c.refused('textDocument/rename', c.at(siteFile, find(SITE, 'dead'), { newName: taken }));
      assert.strictEqual(error.code, -32803, taken);
    }
    // `b` would capture the other step.
    assert.strictEqual((await c.refused('textDocument/rename', c.at(siteFile, find(SITE, 'a.code =='), { newName: 'b' }))).code, -32803);
    assert.strictEqual((await c.refused('textDocument/rename', c.at(kindsFile, find(KINDS, 'code'), { newName: 'temp' }))).code, -32803);
    assert.strictEqual((await c.refused('textDocument/prepareRename', c.at(siteFile, find(SITE, 'incident.open')))).code, -32803);
    assert.strictEqual((await c.refused('textDocument/prepareRename', c.at(siteFile, find(SITE, 'leak')))).code, -32803);
  });

  // -------------------------------------------------------------- completion
  /** Completion at the end of a line that is typed at the end of the file. */
  const complete = async (line, file = siteFile, text = SITE) => {
    const whole = `${text}${line}`;
    await c.change(file, [{ text: whole }]);
    const result = await c.request('textDocument/completion', c.at(file, find(whole, line, 0, line.length)));
    await c.change(file, [{ text }]);
    return result;
  };
  await test('completion: declarations, kinds, fields, enum words', async () => {
    assert.ok(labels(await complete('sig')).includes('signal'));
    assert.ok(labels(await complete('signal x on node { e: ')).includes('gpu.xid'));
    assert.deepStrictEqual(labels(await complete('signal x on node { e: gpu.xid where e.')),
      ['code', 'gpu', 'node', 'sort', 'temp']);
    assert.deepStrictEqual(labels(await complete('signal x on node { e: gpu.xid where it.te')),
      ['code', 'gpu', 'node', 'sort', 'temp']);
    assert.strictEqual(item(await complete('signal x on node { e: gpu.xid where e.'), 'temp').detail, 'celsius?');
    const words = await complete('signal x on node { e: gpu.xid where e.sort == ');
    assert.ok(labels(words).includes('hard') && labels(words).includes('soft'));
    assert.ok(labels(await complete('signal x on node { e: gpu.xid where e.code in ')).includes('bad'));
    assert.ok(labels(await complete('signal x on node { e: gpu.xid where e.code in [')).includes('63'));
  });
  await test('completion: entities, units, types, parameters, functions with doc', async () => {
    assert.ok(labels(await complete('signal x on ')).includes('node'));
    assert.ok(labels(await complete('signal x on (node, ')).includes('gpu'));
    assert.ok(labels(await complete('signal x on node { when gpu.temp.value > 80 ')).includes('celsius'));
    assert.ok(labels(await complete('event x { v: ')).includes('celsius'));
    const params = await complete('signal x on node { when gpu.temp.value > profile.');
    assert.deepStrictEqual(labels(params), ['temp_hot']);
    assert.match(item(params, 'temp_hot').documentation.value, /hw\.big: 87/);
    const expression = await complete('signal x on node { when ');
    assert.match(item(expression, 'trend').documentation.value, /slope/);
    assert.strictEqual(item(expression, 'is_bad').kind, 3);
    assert.ok(labels(expression).includes('xid_rate'));
    assert.deepStrictEqual(labels(await complete('signal x on node { when gpu.temp.value > peers(job).')), ['count', 'mad', 'median']);
  });
  await test('completion: edges, packs, keywords of a clause, tests', async () => {
    assert.ok(labels(await complete('broken causes ')).includes('hot'));
    assert.ok(labels(await complete('broken causes hot scope ')).includes('peers'));
    const edge = labels(await complete('broken causes hot '));
    for (const word of ['lag', 'p', 'scope', 'weight']) assert.ok(edge.includes(word), word);
    const test = (line) => complete(line, testFile, TESTS);
    assert.ok(labels(await test('test "x" { nodes n1 as ')).includes('hw.big'));
    assert.ok(labels(await test('test "x" { nodes n1\n  expect ')).includes('dead'));
    assert.ok(labels(await test('test "x" { nodes n1\n  at 1m: ')).includes('gpu.temp'));
    assert.ok(labels(await test('test "x" { nodes n1\n  at 1m: gpu.xid n1 ')).includes('code'));
    assert.deepStrictEqual(labels(await complete('# a comment ')), []);
  });
  await test('completion edits replace the word before the cursor', async () => {
    const line = 'signal x on node { e: gpu.xid where e.co';
    const found = item(await complete(line), 'code');
    const whole = SITE + line;
    assert.deepStrictEqual(found.textEdit, { range: { start: find(whole, line, 0, line.length - 2), end: find(whole, line, 0, line.length) }, newText: 'code' });
  });

  // -------------------------------------------------------------- signature help
  await test('signature help of functions, macros and test events', async () => {
    const ask = async (line, file = siteFile, text = SITE) => {
      const whole = text + line;
      await c.change(file, [{ text: whole }]);
      const result = await c.request('textDocument/signatureHelp', c.at(file, find(whole, line, 0, line.length)));
      await c.change(file, [{ text }]);
      return result;
    };
    const fn = await ask('feature f on node = cusum(gpu.temp.value, ');
    assert.strictEqual(fn.signatures[0].label, 'cusum(k.f, target T, slack s)');
    assert.strictEqual(fn.activeParameter, 1);
    const macro = await ask('signal x on node { e: gpu.xid where is_bad(');
    assert.strictEqual(macro.signatures[0].label, 'is_bad(e: gpu.xid)');
    assert.match(macro.signatures[0].documentation ? 'doc' : 'none', /doc|none/);
    const event = await ask('test "x" { nodes n1\n  at 1m: gpu.temp n1 ', testFile, TESTS);
    assert.strictEqual(event.signatures[0].label, 'gpu.temp (node: node, value: celsius)');
    assert.strictEqual(await ask('signal x on node { '), null);
  });

  // -------------------------------------------------------------- symbols
  await test('document symbols are a tree, workspace symbols go by letters', async () => {
    const tree = await c.request('textDocument/documentSymbol', { textDocument: { uri: uri(kindsFile) } });
    assert.deepStrictEqual(tree.map((s) => s.name), ['t.kinds', 'gpu.xid', 'gpu.temp', 'bad', 'is_bad']);
    assert.deepStrictEqual(tree[1].children.map((s) => s.name), ['node', 'gpu', 'code', 'sort', 'temp']);
    assert.deepStrictEqual(tree[1].selectionRange, range(KINDS, 'gpu.xid'));
    const hw = await c.request('textDocument/documentSymbol', { textDocument: { uri: uri(hwFile) } });
    assert.deepStrictEqual(hw[0].children.map((s) => s.name), ['temp_hot']);
    const found = await c.request('workspace/symbol', { query: 'XR' });
    assert.deepStrictEqual(found.map((s) => [s.name, s.containerName]), [['xid_rate', 't.site']]);
    assert.deepStrictEqual(found[0].location, { uri: uri(siteFile), range: range(SITE, 'xid_rate') });
  });

  // -------------------------------------------------------------- formatting
  await test('formatting, and only the declarations of a range', async () => {
    const ugly = SITE.replace('signal hot on node {', 'signal   hot on node {').replace('feature xid_rate', 'feature    xid_rate');
    await c.change(siteFile, [{ text: ugly }]);
    const options = { tabSize: 2, insertSpaces: true };
    const all = await c.request('textDocument/formatting', { textDocument: { uri: uri(siteFile) }, options });
    assert.strictEqual(apply(ugly, all), SITE);
    const part = await c.request('textDocument/rangeFormatting',
      { textDocument: { uri: uri(siteFile) }, range: range(ugly, 'signal   hot'), options });
    assert.strictEqual(apply(ugly, part), SITE.replace('feature xid_rate', 'feature    xid_rate'));
    await c.change(siteFile, [{ text: `${SITE}signal {` }]);
    assert.strictEqual((await c.refused('textDocument/formatting', { textDocument: { uri: uri(siteFile) }, options })).code, -32803);
    await c.change(siteFile, [{ text: SITE }]);
    assert.deepStrictEqual(await c.request('textDocument/formatting', { textDocument: { uri: uri(siteFile) }, options }), []);
  });

  // -------------------------------------------------------------- tokens, folding, hints
  const decode = (data, legend, text) => {
    const lines = text.split('\n');
    let line = 0;
    let character = 0;
    const out = [];
    for (let i = 0; i < data.length; i += 5) {
      character = data[i] === 0 ? character + data[i + 1] : data[i + 1];
      line += data[i];
      out.push([lines[line].slice(character, character + data[i + 2]), legend.tokenTypes[data[i + 3]], data[i + 4]]);
    }
    return out;
  };
  await test('semantic tokens: names by what they are, keywords only where they are', async () => {
    const other = new Client(binary);
    const { capabilities } = await other.initialize([]);
    await other.stop();
    const { legend } = capabilities.semanticTokensProvider;
    const { data } = await c.request('textDocument/semanticTokens/full', { textDocument: { uri: uri(siteFile) } });
    const tokens = decode(data, legend, SITE);
    const first = (text) => tokens.find((t) => t[0] === text);
    assert.deepStrictEqual(first('signal'), ['signal', 'keyword', 0]);
    assert.deepStrictEqual(first('dead'), ['dead', 'event', 1]);
    assert.deepStrictEqual(first('xid'), ['xid', 'struct', 0]);
    assert.deepStrictEqual(first('is_bad'), ['is_bad', 'macro', 0]);
    assert.deepStrictEqual(first('hard'), ['hard', 'enumMember', 0]);
    assert.deepStrictEqual(first('temp_hot'), ['temp_hot', 'property', 4]);
    assert.deepStrictEqual(first('rate'), ['rate', 'function', 2]);
    assert.deepStrictEqual(first('30d') || ['1e-5', 'number', 0], ['1e-5', 'number', 0]);
    assert.strictEqual(first('# The GPU says so itself.')[1], 'comment');
    const title = decode((await c.request('textDocument/semanticTokens/range',
      { textDocument: { uri: uri(testFile) }, range: { start: { line: 0, character: 0 }, end: { line: 0, character: 30 } } })).data, legend, TESTS);
    assert.deepStrictEqual(title[1], ['"dead 🔥"', 'string', 0]);
    assert.deepStrictEqual(title[3], ['n1', 'variable', 0]);
  });
  await test('folding, inlay hints, lenses', async () => {
    const folds = await c.request('textDocument/foldingRange', { textDocument: { uri: uri(kindsFile) } });
    assert.deepStrictEqual(folds, [{ startLine: 2, endLine: 7 }]);
    const hints = await c.request('textDocument/inlayHint',
      { textDocument: { uri: uri(siteFile) }, range: { start: { line: 0, character: 0 }, end: { line: 99, character: 0 } } });
    const at = (p) => hints.find((h) => h.position.line === p.line && h.position.character === p.character);
    assert.strictEqual(at(find(SITE, 'temp_hot', 0, 8)).label, 'hw.big 87, hw.unknown 83');
    assert.match(at(find(SITE, 'many', 0, 4)).label, /^\d+ B\/key, horizon 6h$/);
    const lenses = await c.request('textDocument/codeLens', { textDocument: { uri: uri(testFile) } });
    assert.deepStrictEqual(lenses.map((l) => l.command.title), ['run test', 'run test', 'run all tests of the file']);
  });
  await test('a lens runs its test over the unsaved text and shows the outcome', async () => {
    const lenses = await c.request('textDocument/codeLens', { textDocument: { uri: uri(testFile) } });
    const run = (lens) => c.request('workspace/executeCommand', { command: lens.command.command, arguments: lens.command.arguments });
    const good = await run(lenses[0]);
    assert.deepStrictEqual([good.passed, good.failed, good.tests[0].title], [1, 0, 'dead 🔥']);
    const bad = await run(lenses[1]);
    assert.deepStrictEqual([bad.passed, bad.failed], [0, 1]);
    assert.match(bad.tests[0].report, /dead/);
    assert.strictEqual(c.messages[c.messages.length - 1].message, '0 passed, 1 failed');
    await c.change(testFile, [{ text: TESTS.replace('code 7', 'code 63') }]);
    const all = await run(lenses[2]);
    assert.deepStrictEqual([all.passed, all.failed], [2, 0]);
    await c.change(testFile, [{ text: TESTS }]);
    assert.strictEqual((await c.refused('workspace/executeCommand', { command: 'rm', arguments: [] })).code, -32602);
  });
  await test('call hierarchy over cause edges', async () => {
    const [fault] = await c.request('textDocument/prepareCallHierarchy', c.at(siteFile, find(SITE, 'broken')));
    assert.strictEqual(fault.name, 'broken');
    const out = await c.request('callHierarchy/outgoingCalls', { item: fault });
    assert.deepStrictEqual(out.map((e) => e.to.name).sort(), ['dead', 'hot', 'many']);
    const signal = out.find((e) => e.to.name === 'hot');
    assert.deepStrictEqual(signal.fromRanges, [{ start: find(SITE, 'dead, hot', 0, 6), end: find(SITE, 'dead, hot', 0, 9) }]);
    const into = await c.request('callHierarchy/incomingCalls', { item: signal.to });
    assert.deepStrictEqual(into.map((e) => e.from.name), ['broken']);
  });

  // -------------------------------------------------------------- texts that are broken, files that come and go
  await test('a file that does not parse keeps its last good symbols', async () => {
    const broken = SITE.replace('signal dead on node { e: gpu.xid', 'signal dead on node { e gpu.xid');
    await c.change(siteFile, [{ text: broken }]);
    await c.until(siteFile, (d) => d.length > 0, 'a syntax error');
    const go = await c.request('textDocument/definition', c.at(testFile, find(TESTS, 'dead on')));
    assert.deepStrictEqual(go, { uri: uri(siteFile), range: range(broken, 'dead') });
    const tree = await c.request('textDocument/documentSymbol', { textDocument: { uri: uri(siteFile) } });
    assert.ok(tree.map((s) => s.name).includes('dead'));
    await c.change(siteFile, [{ text: SITE }]);
    await c.until(siteFile, (d) => d.length === 0, 'none');
  });
  await test('files that are made, changed and deleted on disk', async () => {
    const extra = path.join(rules, 'site/extra.rfx');
    const told = (type) => c.notify('workspace/didChangeWatchedFiles', { changes: [{ uri: uri(extra), type }] });
    fs.writeFileSync(extra, 'signal extra on node { e: gpu.nope }\n');
    await told(1);
    await c.until(extra, (d) => d.length > 0, 'unknown kind');
    fs.writeFileSync(extra, 'signal extra on node { e: gpu.xid }  # allow R205 a test\n');
    await told(2);
    assert.strictEqual((await c.request('workspace/symbol', { query: 'extra' })).length, 1);
    fs.unlinkSync(extra);
    await told(3);
    await c.until(extra, (d) => d.length === 0, 'none');
    assert.strictEqual((await c.request('workspace/symbol', { query: 'extra' })).length, 0);
  });
  await test('closing a document returns to the disk; a root can go', async () => {
    await c.change(siteFile, [{ text: `${SITE}signal unsaved on node { e: gpu.xid }\n` }]);
    assert.strictEqual((await c.request('workspace/symbol', { query: 'unsaved' })).length, 1);
    await c.close(siteFile);
    assert.strictEqual((await c.request('workspace/symbol', { query: 'unsaved' })).length, 0);
    const folder = { uri: uri(profiles), name: 'hwprofiles' };
    await c.notify('workspace/didChangeWorkspaceFolders', { event: { added: [], removed: [folder] } });
    await c.until(siteFile, (d) => d.some((x) => /temp_hot/.test(x.message)), 'no such parameter');
    await c.notify('workspace/didChangeWorkspaceFolders', { event: { added: [folder], removed: [] } });
    await c.until(siteFile, (d) => d.length === 0, 'none');
  });
  await test('incremental changes: surrogate pairs, several at once, places outside of the text', async () => {
    const file = path.join(rules, 'site/scratch_test.rfx');
    await c.open(file, 'test "🔥🔥" { nodes n1 }\n');
    await c.change(file, [
      { range: { start: { line: 0, character: 8 }, end: { line: 0, character: 10 } }, text: 'x' },  // the second emoji
      { range: { start: { line: 7, character: 70 }, end: { line: 99, character: 0 } }, text: 'test "é" { nodes n1 }\n' },
      { range: { start: { line: 1, character: 6 }, end: { line: 1, character: 7 } }, text: 'ü' },
    ]);
    const tree = await c.request('textDocument/documentSymbol', { textDocument: { uri: uri(file) } });
    assert.deepStrictEqual(tree.map((s) => s.name), ['🔥x', 'ü']);
    await c.close(file);
  });
  await test('a request that waits can be cancelled', async () => {
    const source = new (require('vscode-jsonrpc').CancellationTokenSource)();
    const asked = c.connection.sendRequest('workspace/symbol', { query: '' }, source.token);
    const slow = Array.from({ length: 20 }, () => c.request('textDocument/semanticTokens/full', { textDocument: { uri: uri(testFile) } }));
    source.cancel();
    // It was answered already, or it is taken back; both are right, hanging is not.
    await asked.then((r) => assert.ok(Array.isArray(r)), (e) => assert.strictEqual(e.code, -32800));
    await Promise.all(slow);
  });
  await test('shutdown, then nothing but exit', async () => {
    await c.request('shutdown');
    assert.strictEqual((await c.refused('workspace/symbol', { query: '' })).code, -32600);
    await c.notify('exit');
    assert.strictEqual(await c.exited, 0);
  });

  // -------------------------------------------------------------- raw bytes
  const raw = (bytes) => new Promise((resolve) => {
    const child = spawn(binary, ['lsp'], { stdio: ['pipe', 'pipe', 'inherit'] });
    let out = '';
    child.stdout.on('data', (d) => { out += d; });
    child.on('exit', (code, signal) => resolve({ code, signal, out }));
    child.stdin.on('error', () => undefined);
    child.stdin.end(bytes);
  });
  const frame = (body) => `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  await test('what is no JSON-RPC is answered, not died of', async () => {
    const bodies = ['{', '[]', '[1,{"id":1}]', '42', 'null', '{"id":5}', '{"jsonrpc":"2.0","id":{},"method":"x"}',
      '{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"workspaceFolders":[3]}}',
      '{"method":"textDocument/didChange"}', '"\\ud800"', '[['.repeat(20000)];
    const { code, signal, out } = await raw(`garbage\r\nContent-Length: x\r\n\r\n${bodies.map(frame).join('')}`);
    assert.strictEqual(signal, null);
    assert.strictEqual(code, 1);  // the input ended without shutdown
    assert.match(out, /-32700/);
    assert.match(out, /-32600/);
  });
  await test('exit without shutdown ends with 1', async () => {
    assert.strictEqual((await raw(frame('{"jsonrpc":"2.0","method":"exit"}'))).code, 1);
  });
  await test('big and strange texts', async () => {
    const d = new Client(binary);
    await d.initialize([]);
    const file = '/tmp/none/pack.rfx';
    await d.open(file, 'x');
    for (const text of ['\u0000', '\ufeffpack a.b 1.0.0\n', '((((('.repeat(5000), '"'.repeat(9999), '\r\r\n\r', '🔥'.repeat(10000),
      `pack t.big 1.0.0\n${'event a%d { key node: node }\n'.repeat(20000)}`.replace(/%d/g, (() => { let i = 0; return () => i++; })())]) {
      await d.change(file, [{ text }]);
      for (const method of ['documentSymbol', 'semanticTokens/full', 'foldingRange', 'codeLens']) {
        await d.request(`textDocument/${method}`, { textDocument: { uri: uri(file) } });
      }
      for (const position of [{ line: 0, character: 0 }, { line: 0, character: 3 }, { line: 1, character: 99999 }]) {
        for (const method of ['hover', 'completion', 'definition', 'signatureHelp']) {
          await d.request(`textDocument/${method}`, d.at(file, position));
        }
      }
    }
    assert.strictEqual(await d.stop(), 0);
  });
  await test('the bundled packs have no diagnostics, with `paths` over the repository', async () => {
    const d = new Client(binary);
    await d.initialize([sourceDir], { paths: ['rules/std', 'hwprofiles'] });
    const found = await d.request('workspace/symbol', { query: 'nvlink_local' });
    assert.strictEqual(found[0].name, 'nvlink_local');
    const file = path.join(sourceDir, 'rules/std/nvidia/nvlink.rfx');
    await d.open(file, fs.readFileSync(file, 'utf8'));
    await d.until(file, (list) => list.length === 0, 'none');
    assert.ok([...d.diagnostics.values()].every((p) => p.diagnostics.every((x) => x.severity !== 1)));
    assert.strictEqual(await d.stop(), 0);
  });
}

main().catch((error) => {
  failed += 1;
  console.log(`FAIL ${error.stack}`);
}).finally(() => {
  fs.rmSync(base, { recursive: true, force: true });
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
});
