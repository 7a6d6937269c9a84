import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { type ReplayResult, Worker } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { workflowBundle } from '../support/engine.js';

const FOLDER = join(import.meta.dirname, 'histories');
const HISTORIES = readdirSync(FOLDER).filter((name) => name.endsWith('.json'));

type RecordedHistory = {
  events: {
    eventType: string;
    activityTaskScheduledEventAttributes?: { activityType: { name: string } };
    /** Of a local activity within a workflow task. */
    markerRecordedEventAttributes?: { details: { data?: { payloads: { data: string }[] } } };
  }[];
};
const readHistory = (name: string) => JSON.parse(readFileSync(join(FOLDER, name), 'utf8')) as RecordedHistory;

interface RecordedEffect {
  name: string;
  rename(name: string): void;
}

/** The activities in order. */
function effectsOf(history: RecordedHistory): RecordedEffect[] {
  return history.events.flatMap((event) => {
    const type = event.activityTaskScheduledEventAttributes?.activityType;
    if (type) return { name: type.name, rename: (name: string) => Object.assign(type, { name }) };
    const payload = event.markerRecordedEventAttributes?.details.data?.payloads[0];
    if (!payload) return [];
    const marker = JSON.parse(Buffer.from(payload.data, 'base64').toString());
    const rename = (name: string) => {
      payload.data = Buffer.from(JSON.stringify({ ...marker, activity_type: name })).toString('base64');
    };
    return { name: marker.activity_type, rename };
  });
}

/** One worker replays all histories, one after the other. */
let asked: PassThrough;
let results: AsyncIterableIterator<ReplayResult>;

beforeAll(async () => {
  asked = new PassThrough({ objectMode: true });
  results = Worker.runReplayHistories({ workflowBundle: await workflowBundle() }, asked);
});
afterAll(async () => {
  asked?.end();
  expect(await results?.next()).toMatchObject({ done: true });
});

/** The name of a replay's error; undefined: the workflow continues as it began. */
async function replay(history: RecordedHistory): Promise<string | undefined> {
  asked.write({ workflowId: 'replayed', history });
  const { value } = await results.next();
  return value.error?.name;
}

describe('a workflow that was under way when the code changed', () => {
  it.each(HISTORIES)('continues as it began: %s', { timeout: 300_000 }, async (name) => {
    const history = readHistory(name);
    expect(history.events.length).toBeGreaterThan(5);
    expect(await replay(history)).toBeUndefined();
  });

  it('fails its replay when it would not: a history with another first activity does not replay', {
    timeout: 300_000,
  }, async () => {
    const history = readHistory('gap-run-succeeded.json');
    for (const event of history.events) {
      const type = event.activityTaskScheduledEventAttributes?.activityType;
      if (type?.name === 'planGapRun') type.name = 'somethingElse';
    }
    expect(await replay(history)).toBe('DeterminismViolationError');
  });

  it.each(HISTORIES.filter((name) => name.startsWith('claim-')))(
    'fails its replay when the life of a claim has its effects in another order: %s',
    {
      timeout: 300_000,
    },
    async (name) => {
      const effects = effectsOf(readHistory(name));
      expect(effects.length).toBeGreaterThan(0);
      // The first effect of each kind changes places with the next of another kind, or is another one where there is none.
      for (const effect of new Map(effects.toReversed().map((one) => [one.name, one])).values()) {
        const at = effects.indexOf(effect);
        const history = readHistory(name);
        const changed = effectsOf(history);
        const other = changed.slice(at + 1).find((one) => one.name !== effect.name);
        changed[at]?.rename(other?.name ?? (effect.name === 'readClaim' ? 'noteClaimDue' : 'readClaim'));
        other?.rename(effect.name);
        expect(await replay(history), `${at}: ${effect.name}`).toBe('DeterminismViolationError');
      }
    },
  );

  it('has a recorded history for every workflow', () => {
    expect(HISTORIES.some((name) => name.startsWith('gap-run-'))).toBe(true);
    expect(HISTORIES.some((name) => name.startsWith('billing-import-'))).toBe(true);
    expect(HISTORIES.some((name) => name.startsWith('billing-sync-'))).toBe(true);
    expect(HISTORIES.some((name) => name.startsWith('scheduled-sync'))).toBe(true);
    expect(HISTORIES.some((name) => name.startsWith('repricing-'))).toBe(true);
    expect(HISTORIES.some((name) => name.startsWith('retention-'))).toBe(true);
    expect(HISTORIES.some((name) => name.startsWith('invoice-'))).toBe(true);
    expect(HISTORIES.some((name) => name.startsWith('savings-run-'))).toBe(true);
    expect(HISTORIES.some((name) => name.startsWith('webhook-delivery-'))).toBe(true);
    expect(HISTORIES.some((name) => name.startsWith('claim-'))).toBe(true);
    expect(HISTORIES.some((name) => name.startsWith('weight-recompute-'))).toBe(true);
  });
});

describe('the workflow bundle', () => {
  it('holds no driver, no database code and no schema library', async () => {
    const { code } = await workflowBundle();
    for (const name of ['node_modules/pg/', 'node_modules/knex/', 'node_modules/zod/', '/db/orgDb'])
      expect(code.includes(name), name).toBe(false);
    expect(code.length).toBeLessThan(3_000_000);
  });

  it('histories carry ids and small numbers: no payload above 16 KB', () => {
    for (const name of HISTORIES) {
      const text = readFileSync(join(FOLDER, name), 'utf8');
      for (const [, data] of text.matchAll(/"data": "([^"]*)"/g))
        expect((data ?? '').length).toBeLessThan(16_384);
    }
  });
});
