/** Files that a stranger has to read to follow one thing through the product; docs/architecture.md shows the counts. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { shiftDay } from '../../../domain/period.js';
import { roomChanges } from '../../../lab/house/figures.js';
import { PROJECT_ROOT } from '../../../platform/projectRoot.js';
import { anEvent, aSpan, aTrace, ingest, send, sendJson } from '../../api/support/requests.js';
import { importBill, runGaps } from '../../support/bills.js';
import { type ClaimsPlace, startClaimsPlace } from '../../support/claimsPlace.js';
import { recordWalk, type Walk, withoutPipeline } from './walks.js';

/** The file that `RECORD_WALKS=1 npm run test:slow -- walks` writes and `npm run house` prints. */
const RECORDED = join(PROJECT_ROOT, 'lab/house/walks.json');

/** Old enough that no bill of it is provisional. */
const DAY = shiftDay(new Date().toISOString().slice(0, 10), -20);
const CALLS = 10;
const TOKENS = { input: 1_000_000, output: 200_000 };
/** Twice the list price of what the calls below used. */
const BILL = [
  'date,model,token_class,quantity,amount_usd',
  `${DAY},gpt-4o,input,${CALLS * TOKENS.input},50.00`,
  `${DAY},gpt-4o,output,${CALLS * TOKENS.output},40.00`,
].join('\n');

/** Files that a timer of the process may call in the middle of a walk, such as the one that notes uses of keys. */
const TIMER_FILES = 6;

let place: ClaimsPlace;
const walks: Record<string, Walk> = {};

beforeAll(async () => {
  place = await startClaimsPlace();
  await place.engine.startWorker();
});
afterAll(() => place.close());

describe('a walk through the product', () => {
  it('leads from a span to its event', async () => {
    walks['a span to an event'] = await recordWalk(async () => {
      const answer = await sendJson(place.api, {
        method: 'POST',
        path: '/api/v1/ingest/trace',
        json: aTrace(aSpan()),
      });
      expect(answer.status).toBe(202);
    });
  });

  it('leads from a line of a bill to a finding', async () => {
    const calls = Array.from({ length: CALLS }, (_, at) =>
      anEvent({
        timestamp: `${DAY}T${String(at + 8).padStart(2, '0')}:00:00Z`,
        input_tokens: TOKENS.input,
        output_tokens: TOKENS.output,
      }),
    );
    await ingest(place.api, calls);
    walks['a bill line to a finding'] = await recordWalk(async () => {
      await importBill(place.api, BILL, { provider: 'openai' });
      await runGaps(place.api, '?period=30d');
    });
    const findings = await place.api.get('/api/v1/financial/findings');
    expect(findings.body.findings.length).toBeGreaterThan(0);
  });

  it('leads from a request to the move of a claim', async () => {
    const id = await place.aClaim();
    walks['a claim move'] = await recordWalk(async () => {
      expect((await place.submit(id)).status).toBe(200);
    });
  });

  it('leads from GET usage/summary to its answer', async () => {
    walks['GET usage/summary'] = await recordWalk(async () => {
      expect((await send(place.api, { method: 'GET', path: '/api/v1/usage/summary' })).status).toBe(200);
    });
  });

  it('leads through no more files and rooms than the recorded walk', () => {
    const apart = withoutPipeline(walks);
    if (process.env.RECORD_WALKS === '1') writeFileSync(RECORDED, `${JSON.stringify(apart, null, 2)}\n`);
    const recorded = JSON.parse(readFileSync(RECORDED, 'utf8')) as Record<string, Walk>;
    expect(Object.keys(apart)).toEqual(Object.keys(recorded));
    for (const [name, walk] of Object.entries(apart)) {
      const before = recorded[name] ?? [];
      expect(walk.length, `${name}: files`).toBeLessThanOrEqual(before.length + TIMER_FILES);
      expect(roomChanges(walk), `${name}: changes of room`).toBeLessThanOrEqual(
        roomChanges(before) + TIMER_FILES,
      );
    }
  });
});
