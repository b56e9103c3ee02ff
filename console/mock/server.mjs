/**
 * A stand-in for the controller: serves `dist` and a believable API, for the console's development and tests.
 *
 *     node mock/server.mjs [--port 8377] [--auth] [--viewer]
 *
 * With `--empty` nothing was ever done at it. With `--auth` it asks for a login; the token is `demo`. With `--viewer` the caller may only look.
 */

import { randomUUID } from 'node:crypto';
import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createGzip } from 'node:zlib';
import { check } from './check.mjs';
import * as fleet from './fleet.mjs';
import * as history from './history.mjs';
import { drawing, figures, record } from './record.mjs';
import { targets } from './targets.mjs';

const argument = (name) => process.argv.indexOf(name);
const port = argument('--port') > 0 ? Number(process.argv[argument('--port') + 1]) : 8377;
const auth = argument('--auth') > 0;
const role = argument('--viewer') > 0 ? 'viewer' : 'operator';
/** A controller at which nothing was ever done. */
const empty = argument('--empty') > 0;
const nothing = { active: [], queue: [], recent: [], drivers: [], troubles: [] };
const dist = fileURLToPath(new URL('../dist', import.meta.url));
const begun = Date.now() - 7_200_000;

const info = () => ({
  name: 'lab-1',
  version: '0.1.0',
  role,
  user: auth ? 'anna' : '',
  started_unix_ms: begun,
  largest_document: 4_194_304,
  fingerprint: null,
  troubles: [],
});

class Trouble extends Error {
  constructor(status, message, problems = []) {
    super(message);
    Object.assign(this, { status, problems });
  }
}

const page = (rows, query, id) => {
  const before = query.get('before');
  const from = before === null ? rows : rows.filter((row) => id(row) < Number(before));
  const limited = from.slice(0, Math.min(Number(query.get('limit') ?? 100), 1000));
  // A run's rows stay together.
  const last = limited[limited.length - 1];
  return from.filter((row, index) => index < limited.length || id(row) === id(last));
};
const wanted = (id) => {
  const found = fleet.find(Number(id));
  if (!found) throw new Trouble(404, `there is no submission ${id}`);
  return found;
};
const known = (id) => {
  if (!history.runs.some((run) => run.id === Number(id))) throw new Trouble(404, `there is no run ${id}`);
  return Number(id);
};
const numbers = (text) => (text ?? '').split(',').filter(Boolean).map(known);
const file = (type, body) => ({ type, body });

/** What is answered, by method and path; the reply is JSON, or a file. */
const routes = [
  ['GET', /^\/info$/, () => info()],
  ['GET', /^\/overview$/, () => (empty ? { ...fleet.overview(), ...nothing } : fleet.overview())],
  ['GET', /^\/drivers$/, () => fleet.drivers],
  ['GET', /^\/submissions$/, ({ query }) => page(fleet.submissions, query, (one) => one.id)],
  ['POST', /^\/submissions$/, ({ body }) => submit(body)],
  ['GET', /^\/submissions\/(\d+)$/, ({ id }) => wanted(id)],
  ['PATCH', /^\/submissions\/(\d+)$/, ({ id, body }) => (fleet.change(wanted(id), body), wanted(id))],
  ['POST', /^\/submissions\/(\d+)\/cancel$/, ({ id, body }) => (fleet.cancel(wanted(id), body?.at_once), wanted(id))],
  ['POST', /^\/submissions\/(\d+)\/resubmit$/, ({ id }) => fleet.add({ document: '' }, wanted(id).name, 'anna')],
  [
    'GET',
    /^\/submissions\/(\d+)\/document$/,
    ({ id }) => file('text/plain', wanted(id).document ?? record(wanted(id).run ?? 1).provenance.document),
  ],
  ['GET', /^\/submissions\/(\d+)\/live$/, ({ id }) => fleet.liveRun(wanted(id))],
  ['GET', /^\/targets$/, () => targets],
  ['POST', /^\/check$/, ({ body }) => check(body.document)],
  ['GET', /^\/runs$/, ({ query }) => page(history.runs, query, (run) => run.id)],
  ['GET', /^\/runs\/(\d+)$/, ({ id }) => record(known(id))],
  [
    'DELETE',
    /^\/runs\/(\d+)$/,
    ({ id }) => (
      history.runs.splice(
        history.runs.findIndex((run) => run.id === known(id)),
        1,
      ),
      null
    ),
  ],
  ['GET', /^\/history$/, ({ query }) => history.historyPage(query)],
  ['GET', /^\/runs\/(\d+)\/remark$/, ({ id }) => history.remark(known(id))],
  ['PUT', /^\/runs\/(\d+)\/remark$/, ({ id, body }) => history.setRemark(known(id), body)],
  ['GET', /^\/runs\/(\d+)\/(archive|document|log)$/, ({ rest }) => file('text/plain', `the ${rest}`)],
  ['GET', /^\/runs\/(\d+)\/report$/, ({ query }) => file('text/plain', `the report as ${query.get('format')}`)],
  ['GET', /^\/runs\/(\d+)\/figures$/, () => figures],
  ['GET', /^\/runs\/(\d+)\/figures\/(.+)\.svg$/, ({ id, rest }) => svg(id, rest)],
  ['GET', /^\/matrix$/, ({ query }) => page(history.matrix, query, (row) => row.run)],
  ['GET', /^\/compare$/, ({ query }) => compare(numbers(query.get('a')), numbers(query.get('b')), query.get('margin'))],
  ['GET', /^\/evaluations$/, () => history.evaluations],
  [
    'GET',
    /^\/evaluations\/(\d+)\/report$/,
    ({ id }) =>
      file(
        'text/html',
        `<!doctype html><html lang="en"><title>Evaluation ${id}</title><meta name="color-scheme" content="light dark"><body><main><h1>Evaluation ${id}</h1><p>memory is better than disk.</p></main>`,
      ),
  ],
  ['GET', /^\/audit$/, ({ query }) => page(history.audit, query, (row) => row.id)],
];

function submit(body) {
  const checked = check(body.document);
  if (!checked.ok) throw new Trouble(422, 'the document has errors; nothing was submitted', checked.problems);
  return fleet.add(body, checked.name, 'anna');
}

function svg(id, name) {
  const figure = figures.find((figure) => figure.name === name);
  if (!figure) throw new Trouble(404, `there is no figure ${name}`);
  return file('image/svg+xml', drawing(figure.title, figure.description, figure.unit, Number(id) + name.length));
}

function compare(a, b, margin) {
  if (!a.length || !b.length) throw new Trouble(400, 'name at least one run on each side');
  const drawings = ['Read throughput', 'Read p99'].map((title, index) => [
    title,
    drawing(title, title, index ? 'ms' : 'op/s', index),
  ]);
  const compared = history.comparison(a, b, margin ? parseFloat(margin) / 100 : null);
  return { ...compared, figures: compared.comparable ? drawings : [] };
}

async function read(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return parts.length ? JSON.parse(Buffer.concat(parts).toString()) : undefined;
}

function follow(query, response) {
  const submission = query.get('submission');
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  response.write(': hello\n\n');
  const tell = ({ id, name, data, submission: about }) => {
    const fits = submission === null ? name === 'overview' && !empty : about === Number(submission);
    if (fits) response.write(`id: ${id}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
  };
  fleet.events.on('event', tell);
  response.on('close', () => fleet.events.off('event', tell));
}

/** Sessions that go on, and tickets that were not used. */
const sessions = new Set();
const tickets = new Set();

/** Whom a login lets in: the token is `demo`, and so is the code of a login address, as often as it is opened. */
async function owner(request) {
  const { token, code } = await read(request);
  if ((token ?? code) !== 'demo') throw new Trouble(401, 'The token is not known, or it has been revoked.');
  return { user: 'anna', role };
}

async function api(request, response, path, query) {
  const shown = (request.headers.authorization ?? '').replace(/^Bearer /, '');
  if (path === '/session/owner') return owner(request);
  if (path === '/session' && request.method === 'POST') {
    const session = { key: `session-${randomUUID()}`, owner: await owner(request) };
    sessions.add(session.key);
    return session;
  }
  if (path === '/session') {
    sessions.delete(shown);
    return null;
  }
  if (auth && !sessions.has(shown) && !tickets.delete(request.url)) throw new Trouble(401, 'log in first');
  if (path === '/tickets') {
    const { address } = await read(request);
    const ticketed = `${address}${address.includes('?') ? '&' : '?'}ticket=${randomUUID()}`;
    tickets.add(ticketed);
    return { address: ticketed };
  }
  if (path === '/events') return follow(query, response);
  for (const [method, pattern, answer] of routes) {
    const found = method === request.method && pattern.exec(path);
    if (!found) continue;
    if (method !== 'GET' && role === 'viewer' && path !== '/check') throw new Trouble(403, 'this needs an operator');
    const reply = answer({
      id: found[1],
      rest: found[2],
      query,
      body: method === 'GET' ? undefined : await read(request),
    });
    if (method === 'POST' && path.endsWith('submissions')) response.statusCode = 201;
    return reply;
  }
  throw new Trouble(404, `there is no ${path}`);
}

const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };

function statics(path, response) {
  const named = join(dist, normalize(path));
  const found = named.startsWith(dist) && existsSync(named) && statSync(named).isFile();
  if (!found && extname(path)) {
    response.writeHead(404).end();
    return;
  }
  const served = found ? named : join(dist, 'index.html');
  response.writeHead(200, {
    'content-type': `${types[extname(served)] ?? 'application/octet-stream'}; charset=utf-8`,
    'content-encoding': 'gzip',
    'content-security-policy':
      "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  });
  createReadStream(served).pipe(createGzip()).pipe(response);
}

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://mock');
  if (!pathname.startsWith('/api/v1/')) return statics(pathname, response);
  api(request, response, pathname.slice(7), searchParams).then(
    (reply) => {
      if (response.headersSent) return;
      if (reply === null) response.writeHead(204).end();
      else if (reply.type) response.setHeader('content-type', reply.type).end(reply.body);
      else response.setHeader('content-type', 'application/json').end(JSON.stringify(reply));
    },
    (trouble) => {
      if (!trouble.status) console.error(trouble);
      response.writeHead(trouble.status ?? 500, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ message: trouble.message, problems: trouble.problems }));
    },
  );
});

setInterval(fleet.tick, 1000);
fleet.tick();
server.listen(port, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
