// The console in Chromium: every view, live updates, keyboard, both colour schemes, accessibility
// (axe-core), the page's policy, and the OpenAPI document by a validator. Screenshots on the way.
// console_test.mjs FAKE; environment: CHROMIUM, SCREENSHOTS, OPENAPI.
import {spawn} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {createInterface} from 'node:readline';
import {createRequire} from 'node:module';
import {chromium} from 'playwright-core';
import {Validator} from '@seriousme/openapi-schema-validator';

const require = createRequire(import.meta.url);
const axeSource = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const shots = process.env.SCREENSHOTS;
fs.mkdirSync(shots, {recursive: true});

let passed = 0;
let failed = 0;
async function check(name, work) {
  try {
    await work();
    passed += 1;
    console.log(`ok      ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}: ${error.stack || error}`);
  }
}
function expect(condition, what) { if (!condition) throw new Error(what); }

const fake = spawn(process.argv[2], [], {stdio: ['pipe', 'pipe', 'inherit']});
const lines = createInterface({input: fake.stdout})[Symbol.asyncIterator]();
const url = (await lines.next()).value;
const tell = (line) => fake.stdin.write(`${line}\n`);

const browser = await chromium.launch({executablePath: process.env.CHROMIUM, headless: true, args: ['--no-sandbox', '--disable-gpu',
  '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync']});

/** A page whose console errors and foreign requests are failures. */
async function open(scheme) {
  const context = await browser.newContext({colorScheme: scheme, viewport: {width: 1280, height: 900}, reducedMotion: 'reduce',
    bypassCSP: false});
  const page = await context.newPage();
  page.faults = [];
  page.on('console', (m) => { if (m.type() === 'error') page.faults.push(m.text()); });
  page.on('pageerror', (e) => page.faults.push(String(e)));
  page.on('request', (r) => { if (!r.url().startsWith(url) && !r.url().startsWith('data:')) page.faults.push(`foreign: ${r.url()}`); });
  return page;
}
const go = async (page, hash, title) => {
  await page.goto(`${url}/${hash}`);
  await page.waitForFunction((t) => document.querySelector('main h1')?.textContent.includes(t), title);
};
/** axe runs in an isolated call of the debugger, so the page's policy stays as it is. */
async function accessible(page) {
  await page.evaluate(axeSource);
  const {violations} = await page.evaluate(() => globalThis.axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}));
  expect(violations.length === 0, violations.map((v) => `${v.id} (${v.impact}): ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(' | ')}`).join('\n'));
}
const shot = (page, name) => page.screenshot({path: path.join(shots, `${name}.png`), fullPage: false});

const page = await open('light');
await check('incidents: the open one first, with its answer', async () => {
  await go(page, '', '1 open incident');
  const card = page.locator('#open .card');
  expect(await card.count() === 1, 'one card');
  expect((await card.textContent()).includes('n06'), 'its culprit');
  await page.waitForFunction(() => document.getElementById('live').dataset.state === 'on');
  await shot(page, 'incidents-light');
  await accessible(page);
});
await check('a new verdict arrives by itself and is announced', async () => {
  tell('hang i-live');
  await page.waitForFunction(() => document.querySelector('main h1').textContent.startsWith('2 open'), null, {timeout: 10000});
  const news = await page.locator('#news').textContent();
  expect(news.includes('llm-70b'), `announced: ${news}`);
  expect(await page.locator('#news').getAttribute('aria-live') === 'polite', 'a live region');
});
await check('verdict: graph, bars with limit and origin, timeline, nodes', async () => {
  await page.locator('main a', {hasText: 'n03'}).first().click();
  await page.waitForFunction(() => document.querySelector('main svg'));
  const text = await page.locator('main').textContent();
  for (const part of ['Evidence graph', 'Timeline', 'What to do', 'Hypotheses', 'Was it right?']) expect(text.includes(part), part);
  expect(await page.locator('main svg').count() >= 2, 'graph and timeline are drawn');
  await shot(page, 'verdict-light');
  await page.evaluate(() => [...document.querySelectorAll('main h2')].find((h) => h.textContent === 'Evidence graph').scrollIntoView());
  await shot(page, 'evidence-light');
  await accessible(page);
});
await check('feedback by keyboard alone', async () => {
  await page.locator('#right').focus();
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('main fieldset').textContent.includes('Thank you'));
  await page.locator('#culprits').fill('n07');
  await page.locator('#wrong').focus();
  await page.keyboard.press('Space');
  tell('feedback');
  const count = (await lines.next()).value;
  expect(Number(count) >= 1, `the daemon was told: ${count}`);
  await page.waitForTimeout(300);
  const stored = await (await fetch(`${url}/api/v1/feedback`)).json();
  expect(stored.feedback.length === 2 && stored.feedback[0].culprits[0] === 'n07', JSON.stringify(stored));
});
await check('nodes: search, then the history of one', async () => {
  await go(page, '#/nodes', 'Nodes');
  await page.locator('#prefix').fill('n03');
  await page.waitForFunction(() => document.querySelectorAll('main tbody tr').length === 1);
  await page.locator('main tbody a').click();
  await page.waitForFunction(() => document.querySelector('main h1').textContent === 'n03');
  const text = await page.locator('main').textContent();
  for (const part of ['hw.h100', 'llm-70b', 'site.heat', 'Final verdicts']) expect(text.includes(part), part);
  await shot(page, 'node-light');
  await accessible(page);
});
await check('classes: baselines with the learned threshold drawn', async () => {
  await go(page, '#/classes', 'Hardware classes');
  expect(await page.locator('svg .limit').count() >= 2, 'a line for the threshold in force');
  expect((await page.locator('svg[role=img]').first().getAttribute('aria-label')).includes('in force'), 'drawn and said');
  const text = await page.locator('main').textContent();
  expect(/quantile 0.99 of the (class|parent profile|fleet)/.test(text), 'its origin');
  await shot(page, 'classes-light');
  await accessible(page);
});
await check('packs: last reload with diagnostics, then a reload with its plan', async () => {
  await go(page, '#/packs', 'Packs');
  expect((await page.locator('main').textContent()).includes('[R105]'), 'diagnostics of the last reload');
  const differs = page.locator('table', {hasText: 'Answers that differ'});
  expect((await differs.locator('tbody tr').first().textContent()).includes('no final verdict'), 'what the shadow says otherwise');
  expect((await differs.locator('tbody a').first().getAttribute('href')).startsWith('#/verdict/'), 'a link to the verdict');
  expect((await page.locator('main').textContent()).includes('site.new_signal'), 'firings that differ');
  await shot(page, 'packs-light');
  await page.locator('#reload').focus();
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('main').textContent.includes('Swapped'));
  expect((await page.locator('main').textContent()).includes('its shape changed'), 'the plan');
  await accessible(page);
});
await check('sources and sinks', async () => {
  await go(page, '#/flow', 'Sources and sinks');
  expect((await page.locator('main').textContent()).includes('http/collector'), 'a source');
  await accessible(page);
});
await check('keyboard: skip link first, focus moves with the view, landmarks', async () => {
  await go(page, '', 'open incident');
  await page.evaluate(() => { document.activeElement.blur(); });
  await page.keyboard.press('Tab');
  expect(await page.evaluate(() => document.activeElement.className) === 'skip', 'the skip link is first');
  for (let i = 0; i < 2; ++i) await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('main h1').textContent === 'Nodes');
  expect(await page.evaluate(() => document.activeElement.id) === 'view', 'focus is in the new view');
  expect(await page.locator('nav [aria-current=page]').textContent() === 'Nodes', 'the current view is marked');
  for (const landmark of ['header', 'nav[aria-label]', 'main']) expect(await page.locator(landmark).count() === 1, landmark);
});
await check('an unknown verdict says so', async () => {
  const quiet = await open('light');
  await go(quiet, '#/verdict/none', 'Verdict');
  expect((await quiet.locator('[role=alert]').textContent()).includes('no such verdict'), 'an alert');
  await quiet.context().close();
});
await check('no error on the page, nothing from elsewhere, a strict policy', async () => {
  expect(page.faults.length === 0, page.faults.join('\n'));
  const policy = (await fetch(url)).headers.get('content-security-policy');
  expect(policy.includes("script-src 'self'") && !policy.includes('unsafe'), policy);
  const ran = await page.evaluate(() => { const s = document.createElement('script'); s.textContent = 'globalThis.hostile = 1'; document.body.append(s); return globalThis.hostile; });
  expect(ran === undefined, 'an inline script runs');
});

const dark = await open('dark');
await check('dark: every view is readable', async () => {
  for (const [hash, title, name] of [['', 'open incident', 'incidents-dark'], ['#/classes', 'Hardware classes', 'classes-dark'], ['#/packs', 'Packs', 'packs-dark']]) {
    await go(dark, hash, title);
    await shot(dark, name);
    await accessible(dark);
  }
  await go(dark, '', 'open incident');
  await dark.locator('main a', {hasText: 'n03'}).first().click();
  await dark.waitForFunction(() => document.querySelector('main svg'));
  await dark.evaluate(() => [...document.querySelectorAll('main h2')].find((h) => h.textContent === 'Evidence graph').scrollIntoView());
  await shot(dark, 'evidence-dark');
  await accessible(dark);
  const background = await dark.evaluate(() => getComputedStyle(document.body).backgroundColor);
  expect(background === 'rgb(13, 17, 23)', background);
});
await check('narrow: no view scrolls sideways', async () => {
  await dark.setViewportSize({width: 360, height: 740});
  for (const [hash, title] of [['', 'open incident'], ['#/classes', 'Hardware classes'], ['#/packs', 'Packs'], ['#/flow', 'Sources'], ['#/nodes/n03', 'n03']]) {
    await go(dark, hash, title);
    const wide = await dark.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(wide <= 1, `${hash}: ${wide} px too wide`);
  }
});
await check('OpenAPI: the document is valid', async () => {
  const validator = new Validator();
  const {valid, errors} = await validator.validate(JSON.parse(fs.readFileSync(process.env.OPENAPI, 'utf8')));
  expect(valid, JSON.stringify(errors));
  expect(validator.version === '3.1', validator.version);
});

await browser.close();
fake.stdin.end();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
