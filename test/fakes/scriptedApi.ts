import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { EventStreamCodec } from '@smithy/core/event-streams';
import { createBodyServer } from '../support/bodyServer.js';

/** A loopback fake of a provider's API: answers by path, as the provider's documentation shows them. */

export interface ScriptedAnswer {
  /** Compared with the end of the path, without the query. */
  path: string;
  method?: string;
  /** Absent: any request body. */
  isFor?(body: string): boolean;
  status?: number;
  json?: unknown;
  text?: string;
  /** Data of server-sent events. */
  events?: readonly (string | object)[];
  /** Each event is named by its `type` too, as Anthropic, Cohere and OpenAI's Responses send them. */
  hasEventNames?: boolean;
  /** Frames of AWS's event stream: the event type and its JSON. */
  frames?: readonly (readonly [type: string, json: object])[];
  headers?: Record<string, string>;
  /** Attempts that fail with this status before the answer. */
  failures?: { status: number; times: number };
}

export interface SeenRequest {
  path: string;
  body: string;
  headers: Record<string, string | string[] | undefined>;
}

export interface ScriptedApi {
  origin: string;
  requests: SeenRequest[];
  close(): Promise<void>;
}

export async function startScriptedApi(answers: readonly ScriptedAnswer[]): Promise<ScriptedApi> {
  const requests: SeenRequest[] = [];
  const failed = new Map<ScriptedAnswer, number>();
  const server = createBodyServer(async (request, response, bytes) => {
    // Answers are compared as texts, whenever they were made.
    response.sendDate = false;
    const path = decodeURIComponent(new URL(request.url ?? '/', 'http://fake').pathname);
    const body = bytes.toString('utf8');
    requests.push({ path, body, headers: request.headers });
    const answer = answers.find(
      (one) =>
        path.endsWith(one.path) &&
        (one.method === undefined || one.method === request.method) &&
        (one.isFor === undefined || one.isFor(body)),
    );
    if (!answer) {
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"message":"no such path"}');
      return;
    }
    const failures = failed.get(answer) ?? 0;
    if (answer.failures && failures < answer.failures.times) {
      failed.set(answer, failures + 1);
      response.writeHead(answer.failures.status, {
        'content-type': 'application/json',
        'retry-after-ms': '5',
      });
      response.end('{"message":"planned failure"}');
      return;
    }
    const { status = 200, headers = {} } = answer;
    if (answer.events) {
      response.writeHead(status, { 'content-type': 'text/event-stream', ...headers });
      for (const event of answer.events) {
        if (answer.hasEventNames) response.write(`event: ${(event as { type: string }).type}\n`);
        response.write(`data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`);
        await sleep(1);
      }
      response.end();
    } else if (answer.frames) {
      response.writeHead(status, { 'content-type': 'application/vnd.amazon.eventstream', ...headers });
      for (const [type, json] of answer.frames) response.write(frameOf(type, json));
      response.end();
    } else {
      const type = answer.text === undefined ? 'application/json' : 'application/x-jsonl';
      response.writeHead(status, { 'content-type': type, ...headers });
      response.end(answer.text ?? JSON.stringify(answer.json));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const codec = new EventStreamCodec(
  (bytes) => new TextDecoder().decode(bytes as Uint8Array),
  (text) => new TextEncoder().encode(text),
);

function frameOf(type: string, json: object): Uint8Array {
  const text = (value: string) => ({ type: 'string' as const, value });
  return codec.encode({
    headers: {
      ':message-type': text('event'),
      ':event-type': text(type),
      ':content-type': text('application/json'),
    },
    body: new TextEncoder().encode(JSON.stringify(json)),
  });
}
