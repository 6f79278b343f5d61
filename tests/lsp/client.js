// A client of `reflex lsp`: the server as a child process behind VS Code's own protocol library.
'use strict';

const fs = require('fs');
const path = require('path');
const { spawn } = require('child_process');
const { pathToFileURL } = require('url');
const rpc = require('vscode-jsonrpc/node');
const lsp = require('vscode-languageserver-protocol');

class Client {
  constructor(binary) {
    this.child = spawn(binary, ['lsp'], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.exited = new Promise((resolve) => this.child.on('exit', (code) => resolve(code)));
    this.connection = rpc.createMessageConnection(
      new rpc.StreamMessageReader(this.child.stdout), new rpc.StreamMessageWriter(this.child.stdin));
    this.diagnostics = new Map();  // uri -> the last list
    this.messages = [];
    this.registered = [];
    this.connection.onNotification(lsp.PublishDiagnosticsNotification.type, (params) => {
      this.diagnostics.set(params.uri, params);
    });
    this.connection.onNotification(lsp.ShowMessageNotification.type, (p) => this.messages.push(p));
    this.connection.onRequest(lsp.RegistrationRequest.type, (params) => {
      this.registered.push(...params.registrations);
    });
    this.connection.listen();
    this.versions = new Map();
  }

  async initialize(roots, options) {
    const result = await this.connection.sendRequest(lsp.InitializeRequest.type, {
      processId: process.pid,
      rootUri: null,
      workspaceFolders: roots.map((r) => ({ uri: uri(r), name: path.basename(r) })),
      capabilities: { workspace: { didChangeWatchedFiles: { dynamicRegistration: true } } },
      initializationOptions: options,
    });
    await this.connection.sendNotification(lsp.InitializedNotification.type, {});
    return result;
  }

  request(method, params) { return this.connection.sendRequest(method, params); }
  notify(method, params) { return this.connection.sendNotification(method, params); }

  /** A request that must be refused: its error. */
  async refused(method, params) {
    try {
      await this.request(method, params);
    } catch (error) {
      return error;
    }
    throw new Error(`${method} was answered`);
  }

  open(file, text) {
    const document = { uri: uri(file), languageId: 'rfx', version: 1, text };
    this.versions.set(file, 1);
    return this.notify('textDocument/didOpen', { textDocument: document });
  }
  change(file, contentChanges) {
    const version = this.versions.get(file) + 1;
    this.versions.set(file, version);
    return this.notify('textDocument/didChange', { textDocument: { uri: uri(file), version }, contentChanges });
  }
  close(file) { return this.notify('textDocument/didClose', { textDocument: { uri: uri(file) } }); }

  at(file, position, more) {
    return { textDocument: { uri: uri(file) }, position, ...more };
  }

  /** The diagnostics of a file once `wanted` holds for them. */
  async until(file, wanted, what) {
    const end = Date.now() + 20000;
    for (;;) {
      const now = this.diagnostics.get(uri(file));
      if (now && wanted(now.diagnostics)) return now.diagnostics;
      if (Date.now() > end) {
        throw new Error(`no such diagnostics: ${what}; there are ${JSON.stringify(now)}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  async stop() {
    await this.request('shutdown');
    await this.notify('exit');
    return this.exited;
  }
}

function uri(file) { return pathToFileURL(file).toString(); }

function write(root, files) {
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(root, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, text);
  }
}

/** The place of `word` in a text, as LSP counts: JavaScript strings are UTF-16. `skip` occurrences are left out. */
function find(text, word, skip = 0, into = 0) {
  let at = -1;
  for (let i = 0; i <= skip; ++i) {
    at = text.indexOf(word, at + 1);
    if (at < 0) throw new Error(`no '${word}' in the text`);
  }
  const before = text.slice(0, at + into);
  const line = before.split('\n').length - 1;
  return { line, character: before.length - (before.lastIndexOf('\n') + 1) };
}

function range(text, word, skip = 0) {
  return { start: find(text, word, skip), end: find(text, word, skip, word.length) };
}

/** The text with LSP edits applied. */
function apply(text, edits) {
  const lines = text.split('\n');
  const offset = (p) => lines.slice(0, p.line).reduce((n, l) => n + l.length + 1, 0) + p.character;
  const sorted = [...edits].sort((a, b) => offset(b.range.start) - offset(a.range.start));
  return sorted.reduce(
    (t, e) => t.slice(0, offset(e.range.start)) + e.newText + t.slice(offset(e.range.end)), text);
}

module.exports = { Client, uri, write, find, range, apply };
