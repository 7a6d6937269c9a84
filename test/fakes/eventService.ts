import { gunzipSync } from 'node:zlib';
import { Trueup, type TrueupOptions } from '../../sdk/js/src/node.js';

/** A service without a server: it keeps the events that the JavaScript package sends. */
export class EventService {
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests assert
  readonly events: any[] = [];

  /** A connection to it that fetches no rules. */
  connect(options: TrueupOptions = {}): Trueup {
    return new Trueup({
      url: 'http://trueup.test',
      apiKey: 'tru_test',
      enforcement: false,
      flushAtExit: false,
      fetch: async (_, init) => this.#receive(init),
      ...options,
    });
  }

  #receive(init: RequestInit | undefined): Response {
    const body = init?.body;
    const text = typeof body === 'string' ? body : gunzipSync(body as Uint8Array).toString('utf8');
    this.events.push(...JSON.parse(text).events);
    return Response.json({ rejected: [] });
  }
}
