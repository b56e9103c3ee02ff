/** Server-sent events, read from the body of an answer: the browser's own reader cannot send a header. */

export interface ServerSent {
  name: string;
  data: string;
  /** The last number that was sent, with this event or before it; empty before the first. */
  id: string;
}

/** The events of a body, as they come. One that is cut off is none. */
export async function* serverSent(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<ServerSent, void> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let id = '';
  let name = '';
  let data: string[] = [];
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    // A carriage return at the end may be half of a line's end.
    const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line === '') {
        if (data.length > 0) yield { name: name || 'message', data: data.join('\n'), id };
        name = '';
        data = [];
        continue;
      }
      // What begins with a colon is a comment: it has a field without a name.
      const [, field, content = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
      if (field === 'event') name = content;
      else if (field === 'data') data.push(content);
      else if (field === 'id') id = content;
    }
  }
}
