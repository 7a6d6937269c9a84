import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { createBodyServer } from '../../support/bodyServer.js';

/** A loopback service that takes batches of the packages, and a folder for their spool. */
export interface EventService {
  url: string;
  /** A folder that is deleted when the service is closed. */
  spool: string;
  /** By the id of an event: how often it was received. */
  arrived: Map<string, number>;
  /** Answers to the next batches, none of whose events are received. */
  refusals: { status: number; headers?: Record<string, string> }[];
  /** While true, it receives events and does not answer. */
  isHanging: boolean;
  /** Leaves the next batch unread and without an answer; resolves when that batch comes. */
  holdNext(): Promise<void>;
  close(): Promise<void>;
}

export async function startEventService(): Promise<EventService> {
  let onHeld: (() => void) | undefined;
  const server = createBodyServer((request, response, bytes) => {
    if (request.method !== 'POST') {
      response.writeHead(404).end();
      return;
    }
    if (onHeld) {
      onHeld();
      onHeld = undefined;
      return;
    }
    const refusal = service.refusals.shift();
    if (refusal) {
      response.writeHead(refusal.status, refusal.headers).end();
      return;
    }
    const text = request.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes;
    const { events } = JSON.parse(text.toString('utf8')) as { events: { request_id: string }[] };
    for (const { request_id: id } of events) service.arrived.set(id, (service.arrived.get(id) ?? 0) + 1);
    if (!service.isHanging)
      response.writeHead(202, { 'content-type': 'application/json' }).end('{"accepted":1}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const service: EventService = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spool: mkdtempSync(join(tmpdir(), 'trueup-spool-')),
    arrived: new Map(),
    refusals: [],
    isHanging: false,
    holdNext: () =>
      new Promise((resolve) => {
        onHeld = resolve;
      }),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      rmSync(service.spool, { recursive: true, force: true });
    },
  };
  return service;
}
