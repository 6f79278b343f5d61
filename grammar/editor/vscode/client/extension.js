// The client: starts `reflex lsp`, restarts it on demand, and shows what a test lens found.
'use strict';

const path = require('path');
const vscode = require('vscode');
const { LanguageClient, TransportKind } = require('vscode-languageclient/node');

let client;
let output;

/** The binary of the setting; a relative path with a folder in it lies below the first workspace folder. */
function serverPath() {
  const wanted = vscode.workspace.getConfiguration('reflex').get('server.path', 'reflex');
  const folders = vscode.workspace.workspaceFolders || [];
  const relative = !path.isAbsolute(wanted) && /[\\/]/.test(wanted);
  return relative && folders.length > 0 ? path.join(folders[0].uri.fsPath, wanted) : wanted;
}

function settings() {
  return { paths: vscode.workspace.getConfiguration('reflex').get('paths', []) };
}

/** The outcome of a lens: a message by the server itself, the reports in the output. */
async function executeCommand(command, args, next) {
  const result = await next(command, args);
  if (result && Array.isArray(result.tests)) {
    for (const test of result.tests) {
      output.appendLine(`${test.passed ? 'pass' : 'FAIL'} ${test.title}`);
      if (test.report) output.appendLine(test.report);
    }
    if (result.failed > 0) output.show(true);
  }
  return result;
}

function start() {
  const run = { command: serverPath(), args: ['lsp'], transport: TransportKind.stdio };
  client = new LanguageClient('reflex', 'Reflex', { run, debug: run }, {
    documentSelector: [{ language: 'rfx' }],
    initializationOptions: settings(),
    outputChannel: output,
    middleware: {
      executeCommand,
      workspace: {
        didChangeConfiguration: () =>
          client.sendNotification('workspace/didChangeConfiguration', { settings: { reflex: settings() } }),
      },
    },
    synchronize: { configurationSection: 'reflex' },
  });
  return client.start().catch((error) => {
    vscode.window.showErrorMessage(
      `Reflex: '${run.command} lsp' does not start (${error.message}). Set reflex.server.path.`);
  });
}

async function restart() {
  if (client) await client.stop().catch(() => undefined);
  await start();
}

async function activate(context) {
  output = vscode.window.createOutputChannel('Reflex');
  context.subscriptions.push(output, vscode.commands.registerCommand('reflex.restart', restart));
  await start();
}

function deactivate() {
  return client ? client.stop() : undefined;
}

module.exports = { activate, deactivate };
