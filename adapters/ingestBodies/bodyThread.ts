/**
 * A thread that reads bodies which would block the API. It loads only the code that decodes and maps, and no database
 * or network client, because other native modules do not work in a thread.
 */
import { once } from 'node:events';
import { type MessagePort, parentPort } from 'node:worker_threads';
import type { MappedBatch } from '../../domain/events/event.js';
import type { MapContext } from '../../domain/events/itemFault.js';
import type { Provider } from '../../domain/providers.js';
import { decodeBody } from './decodeBody.js';
import { type FromThread, failureOf, partsOf, type ToThread } from './threadHandle.js';

if (parentPort === null) throw new Error('this program runs as a thread of the API');
const port: MessagePort = parentPort;

async function receive(): Promise<ToThread> {
  const [message] = (await once(port, 'message')) as [ToThread];
  return message;
}

/** Sends a message and waits for the answer. */
function ask(message: FromThread): Promise<ToThread> {
  port.postMessage(message);
  return receive();
}

/** Reads a body; returns the last message about it. */
async function read(job: Extract<ToThread, { type: 'read' }>): Promise<FromThread> {
  const { bytes, kind, nowMicros, oldestMicros } = job;
  const body = decodeBody(kind, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  const wanted = await ask({ type: 'items', items: body.items });
  if (wanted.type === 'stop') return { type: 'stopped' };
  const batch = await mapBody(body.map, { nowMicros, oldestMicros });
  for (const part of partsOf(batch)) {
    const next = await ask({ type: 'part', part });
    if (next.type === 'stop') return { type: 'stopped' };
  }
  return { type: 'done', ignored: batch.ignored };
}

/** Maps the calls, and maps them again with the API's answer about unknown models: only the API has prices. */
async function mapBody(
  map: (context: MapContext) => MappedBatch,
  window: Pick<MapContext, 'nowMicros' | 'oldestMicros'>,
): Promise<MappedBatch> {
  const asked = new Set<string>();
  const first = map({
    ...window,
    inferProvider: (model) => {
      asked.add(model);
      return undefined;
    },
  });
  if (asked.size === 0) return first;
  const models = [...asked];
  const answer = await ask({ type: 'models', models });
  if (answer.type !== 'providers') throw new Error(`expected providers, not ${answer.type}`);
  const known = new Map<string, Provider | undefined>(
    models.map((model, at) => [model, answer.providers[at]]),
  );
  return map({ ...window, inferProvider: (model) => known.get(model) });
}

for (;;) {
  const job = await receive();
  if (job.type !== 'read') throw new Error(`expected a body, not ${job.type}`);
  const last = await read(job).catch((error: unknown): FromThread => {
    return { type: 'failed', failure: failureOf(error) };
  });
  port.postMessage(last);
}
