// The TextMate grammar and the snippets of the VS Code extension. usage: node grammar_test.js REFLEX SOURCE_DIR
//
// Every keyword of grammar/RuleLexer.g4 is coloured; samples have the scopes that they should; every
// bundled pack is read without a string or a comment that runs away; every snippet parses.
'use strict';

const assert = require('assert');
const fs = require('fs');
const path = require('path');
const { spawnSync } = require('child_process');

try {
  require.resolve('vscode-textmate');
} catch {
  console.log('SKIPPED: the npm packages of tests/lsp are missing; run: (cd tests/lsp && npm ci)');
  process.exit(77);
}
const textmate = require('vscode-textmate');
const oniguruma = require('vscode-oniguruma');

const [binary, root] = process.argv.slice(2);
const extension = path.join(root, 'grammar/editor/vscode');
let passed = 0;
let failed = 0;
function test(name, body) {
  try {
    body();
    passed += 1;
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${name}\n  ${(error.stack || String(error)).split('\n').slice(0, 10).join('\n  ')}`);
  }
}

function rfxFiles(folder) {
  return fs.readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const file = path.join(folder, entry.name);
    if (entry.isDirectory()) return rfxFiles(file);
    return file.endsWith('.rfx') ? [file] : [];
  });
}

async function load() {
  const wasm = fs.readFileSync(require.resolve('vscode-oniguruma/release/onig.wasm'));
  await oniguruma.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength));
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (s) => new oniguruma.OnigString(s),
    }),
    loadGrammar: async () => textmate.parseRawGrammar(
      fs.readFileSync(path.join(extension, 'syntaxes/rfx.tmLanguage.json'), 'utf8'), 'rfx.tmLanguage.json'),
  });
  return registry.loadGrammar('source.rfx');
}

async function main() {
  const grammar = await load();
  /** [text, innermost scope] of each token of some lines. */
  const tokens = (text) => {
    let state = textmate.INITIAL;
    const out = [];
    for (const line of text.split('\n')) {
      const result = grammar.tokenizeLine(line, state);
      state = result.ruleStack;
      for (const t of result.tokens) {
        const word = line.slice(t.startIndex, t.endIndex).trim();
        if (word) out.push([word, t.scopes[t.scopes.length - 1]]);
      }
    }
    out.state = state;
    return out;
  };
  const scope = (text, word) => (tokens(text).find((t) => t[0] === word) || [])[1];

  test('every keyword of the lexer has a colour', () => {
    const lexer = fs.readFileSync(path.join(root, 'grammar/RuleLexer.g4'), 'utf8');
    const keywords = [...lexer.matchAll(/^.*K_\w+ : '.*$/gm)]
      .flatMap((line) => [...line[0].matchAll(/K_\w+ : '([a-z_]+)'/g)].map((m) => m[1]));
    assert.ok(keywords.length > 150, `only ${keywords.length} keywords found`);
    for (const word of keywords) {
      assert.match(String(scope(`  ${word} `, word)), /keyword|storage|constant|support/, word);
    }
  });
  test('every unit of the lexer has a colour', () => {
    const lexer = fs.readFileSync(path.join(root, 'grammar/RuleLexer.g4'), 'utf8');
    const units = [...lexer.match(/^UNIT : [^;]*;/m)[0].matchAll(/'(\w+)'/g)].map((m) => m[1]);
    assert.ok(units.length > 15);
    for (const unit of units) assert.strictEqual(scope(`x > 3 ${unit}`, unit), 'support.type.unit.rfx', unit);
  });
  test('samples', () => {
    const rows = [
      ['signal hot on node {', 'hot', 'entity.name.type.rfx'],
      ['export list bad: set<u16> = [48]', 'export', 'storage.modifier.rfx'],
      ['export list bad: set<u16> = [48]', 'u16', 'support.type.rfx'],
      ['broken causes hot p 0.9 lag -30s .. 15m', 'broken', 'entity.name.function.rfx'],
      ['broken causes hot p 0.9 lag -30s .. 15m', '15m', 'constant.numeric.duration.rfx'],
      ['  line /(?:a\\/b) "x"/ -> gpu.xid { code = $1 }', '/(?:a\\/b) "x"/', 'string.regexp.rfx'],
      ['# allow R204 known', 'R204', 'constant.other.diagnostic.rfx'],
      ['# a "quote', '# a "quote', 'comment.line.number-sign.rfx'],
      ['annotate summary "{v.top.node} at {v.top.p:%.2f}"', 'v', 'variable.other.object.rfx'],
      ['annotate summary "{v.top.node} at {v.top.p:%.2f}"', ':%.2f', 'constant.other.placeholder.rfx'],
      ['e: gpu.xid where e.reg[0] any bits (1, 20)', 'gpu', 'variable.other.object.rfx'],
      ['when decayed(x.y, half_life 3d) > 5%', 'decayed', 'support.function.rfx'],
      ['when x > 5%', '5%', 'constant.numeric.percent.rfx'],
      ['until 2026-12-31', '2026-12-31', 'constant.numeric.date.rfx'],
      ['it.info & 0x03f00000', '0x03f00000', 'constant.numeric.hex.rfx'],
      ['x in true and false', 'and', 'keyword.operator.logical.rfx'],
    ];
    for (const [line, word, wanted] of rows) assert.strictEqual(scope(line, word), wanted, `${word} in ${line}`);
  });
  test('no bundled pack leaves the grammar inside of a string', () => {
    const files = [...rfxFiles(path.join(root, 'rules')), ...rfxFiles(path.join(root, 'hwprofiles'))];
    assert.ok(files.length > 50);
    for (const file of files) {
      assert.strictEqual(tokens(fs.readFileSync(file, 'utf8')).state.depth, 1, file);
    }
  });
  test('every snippet parses and is laid out as fmt does', () => {
    const snippets = JSON.parse(fs.readFileSync(path.join(extension, 'snippets/rfx.json'), 'utf8'));
    for (const [name, { body }] of Object.entries(snippets)) {
      const text = body.join('\n').replace(/\$\{\d+\|([^,|]*)[^}]*\}/g, '$1').replace(/\\\$/g, '\u0001')
        .replace(/\$\{\d+:((?:[^{}\\]|\\.)*)\}/g, '$1').replace(/\$\d+/g, '').replace(/\u0001/g, '$')
        .replace(/\\\\/g, '\\').replace(/\n+$/, '\n');
      const run = spawnSync(binary, ['fmt', '-'], { input: text, encoding: 'utf8' });
      assert.strictEqual(run.status, 0, `${name}: ${run.stderr}\n${text}`);
      assert.strictEqual(run.stdout, text, name);
    }
  });
  test('the extension names files that are there', () => {
    const manifest = JSON.parse(fs.readFileSync(path.join(extension, 'package.json'), 'utf8'));
    const files = [manifest.main, ...manifest.contributes.grammars.map((g) => g.path),
      ...manifest.contributes.snippets.map((s) => s.path), ...manifest.contributes.languages.map((l) => l.configuration)];
    for (const file of files) assert.ok(fs.existsSync(path.join(extension, file)), file);
    assert.strictEqual(spawnSync(process.execPath, ['--check', path.join(extension, manifest.main)]).status, 0);
    JSON.parse(fs.readFileSync(path.join(extension, 'language-configuration.json'), 'utf8'));
  });
}

main().catch((error) => {
  failed += 1;
  console.log(`FAIL ${error.stack}`);
}).finally(() => {
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
});
