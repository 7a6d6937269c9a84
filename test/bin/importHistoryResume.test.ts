import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { importHistory } from '../../bin/history/importHistory.js';
import { drawKey } from '../../usecases/access/keyChanges.js';
import { makeTestFolder } from '../support/testFolder.js';

/** Ingest as documented: a repeated id changes nothing. Fails at one request, before or after it has stored. */
const ingest = { stored: new Set<string>(), requests: 0, failAt: -1, storesFirst: false };
let server: Server;
let folder: string;

beforeAll(async () => {
  folder = makeTestFolder('history-resume');
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const isFailing = ingest.requests === ingest.failAt;
      ingest.requests += 1;
      const ids = Buffer.concat(chunks)
        .toString()
        .split('\n')
        .map((line) => JSON.parse(line).request_id as string);
      const before = ingest.stored.size;
      if (!isFailing || ingest.storesFirst) for (const id of ids) ingest.stored.add(id);
      response.writeHead(isFailing ? 403 : 202, { 'content-type': 'application/json' });
      const duplicates = ids.length - (ingest.stored.size - before);
      response.end(JSON.stringify({ accepted: ids.length, duplicates, rejected: [] }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(() => server?.close());

const rowKinds = fc.array(fc.constantFrom('call', 'call', 'call', 'cached', 'broken'), {
  minLength: 1,
  maxLength: 40,
});

describe('an interrupted import', () => {
  it('counts every row once after any sequence of failures, and a repeat stores nothing', async () => {
    let round = 0;
    const property = fc.asyncProperty(
      rowKinds,
      fc.integer({ min: 1, max: 60 }),
      fc.array(fc.record({ failAt: fc.nat(3), storesFirst: fc.boolean() }), { maxLength: 4 }),
      async (kinds, times, failures) => {
        round += 1;
        const rows = Array.from({ length: kinds.length * times }, (_, at) => ({
          kind: kinds[at % kinds.length],
          id: `${round}-${at}`,
        }));
        const file = join(folder, `${round}.jsonl`);
        writeFileSync(file, rows.map(lineOf).join('\n'));
        ingest.stored = new Set();
        const service = {
          url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
          key: drawKey().text,
        };
        const asked = {
          source: 'litellm',
          file,
          provider: undefined,
          cacheDir: folder,
          now: () => new Date(),
        } as const;
        for (const failure of failures) {
          Object.assign(ingest, failure, { requests: 0 });
          await importHistory(service, asked).catch((error: Error) =>
            expect(error.message).toMatch(/Run the same command again/),
          );
        }
        ingest.failAt = -1;
        const done = await importHistory(service, asked);
        const of = (kind: string) => rows.filter((row) => row.kind === kind);
        expect(ingest.stored).toEqual(new Set(of('call').map(({ id }) => id)));
        const again = await importHistory(service, asked);
        expect(ingest.stored.size).toBe(of('call').length);
        expect([again.rows, again.stored, again.repeats]).toEqual([rows.length, 0, of('call').length]);
        for (const { rows: counted, stored, repeats, skipped, faults } of [again, done]) {
          expect(counted).toBe(rows.length);
          expect(stored + repeats).toBe(of('call').length);
          expect(sumOf(skipped)).toBe(of('cached').length);
          expect(sumOf(faults)).toBe(of('broken').length);
        }
      },
    );
    await fc.assert(property, { numRuns: 25 });
  });
});

const sumOf = (reasons: Record<string, { rows: number }>) =>
  Object.values(reasons).reduce((sum, { rows }) => sum + rows, 0);

function lineOf({ kind, id }: { kind: string | undefined; id: string }): string {
  return JSON.stringify({
    request_id: id,
    model: 'gpt-4o',
    startTime: kind === 'broken' ? 'yesterday' : '2025-03-02 08:00:00',
    prompt_tokens: 10,
    completion_tokens: 5,
    cache_hit: kind === 'cached' ? 'True' : 'False',
  });
}
