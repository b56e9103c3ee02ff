import { expect, test } from 'vitest';
import { serverSent, type ServerSent } from './sse';

/** What is read when these bytes come one part after the other. */
async function read(...parts: (string | Uint8Array<ArrayBuffer>)[]): Promise<ServerSent[]> {
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      for (const part of parts) controller.enqueue(typeof part === 'string' ? encoder.encode(part) : part);
      controller.close();
    },
  });
  const events: ServerSent[] = [];
  for await (const event of serverSent(body)) events.push(event);
  return events;
}

const text = ': hello\n\nevent: overview\ndata: {"a":"é: b"}\n\nid: 7\nevent: second\ndata: 1\ndata: 2\n\ndata:3\n\n';
const events = [
  { name: 'overview', data: '{"a":"é: b"}', id: '' },
  { name: 'second', data: '1\n2', id: '7' },
  { name: 'message', data: '3', id: '7' },
];

test('events are read with any line ends', async () => {
  for (const end of ['\n', '\r\n', '\r']) {
    // With a lone carriage return, only what comes next shows that the last line has ended.
    expect(await read(text.replaceAll('\n', end) + ': end\n')).toEqual(events);
  }
});

test('events are the same wherever the stream is cut into parts', async () => {
  const bytes = new TextEncoder().encode(text.replaceAll('\n', '\r\n'));
  for (let cut = 1; cut < bytes.length; cut++) {
    expect(await read(bytes.slice(0, cut), bytes.slice(cut))).toEqual(events);
  }
});

test('an event that is cut off is none', async () => {
  expect(await read('data: 1\n\nevent: second\ndata: 2\n')).toEqual([{ name: 'message', data: '1', id: '' }]);
});
