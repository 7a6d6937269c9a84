import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { picoFromDecimal } from '../../../domain/money.js';
import type { TestApi, TestOrganization } from '../../support/api.js';
import { importBill, runGaps } from '../../support/bills.js';
import { excessByDay, type PublishedCase } from '../../support/published/case.js';
import { PUBLISHED_CASES } from '../../support/published/cases.js';
import { documentsOf } from '../../support/published/documents.js';
import { daysUntilBefore, eventsOf } from '../../support/published/events.js';
import { onLaterDays, scaled } from '../../support/published/transform.js';
import { startWorkingApi } from '../../support/workingApi.js';

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas; tests read what they need
type Json = any;

const FINDINGS = '/api/v1/financial/findings';
const EVENTS_PER_REQUEST = 2_000;
const RUN_LIMIT_MS = 180_000;
/** Both are of one model at one provider, on the same days. */
const READS = 'tokens read from the cache at the rate of input, as pages of Anthropic';
const WRITES = 'cache writes of five minutes at the rate of an hour, as pages of Anthropic';

let api: TestApi;
let other: TestOrganization;
let reads: PublishedCase;
let writes: PublishedCase;

beforeAll(async () => {
  api = await startWorkingApi();
  other = await api.addOrganization('Other');
  reads = recently(READS);
  writes = recently(WRITES);
}, 300_000);

afterAll(() => api?.close());

/** A hundredth of a case's calls, moved so that its last day is long closed. */
function recently(name: string): PublishedCase {
  const found = PUBLISHED_CASES.find((one) => one.name === name);
  if (!found) throw new Error(`there is no case "${name}"`);
  const today = new Date().toISOString().slice(0, 10);
  return onLaterDays(scaled(found, 1, 100), daysUntilBefore(found, today, 20));
}

async function bringIn(one: PublishedCase, { adminKey, ingestKey }: TestOrganization): Promise<void> {
  const events = eventsOf(one);
  for (let at = 0; at < events.length; at += EVENTS_PER_REQUEST) {
    const part = events.slice(at, at + EVENTS_PER_REQUEST);
    const { status, body } = await api.post('/api/v1/ingest/events', { events: part }, ingestKey);
    expect([status, body.accepted, body.duplicates]).toEqual([202, part.length, 0]);
  }
  for (const { text } of documentsOf(one)) {
    const done = await importBill(api, text, { provider: one.provider }, adminKey);
    expect([done.status, done.unparsed]).toEqual(['succeeded', []]);
  }
}

/** An organization's findings without their time and run. */
async function findingsOf({ adminKey }: TestOrganization): Promise<Json[]> {
  const { body } = await api.get(`${FINDINGS}?limit=1000`, adminKey);
  return Promise.all(
    body.findings.map(async ({ id }: Json) => {
      const whole = (await api.get(`${FINDINGS}/${id}`, adminKey)).body;
      const { run_id: run, updated_at: _, evidence_refs: refs, ...rest } = whole;
      return { ...rest, evidence_refs: refs.filter((ref: string) => !ref.includes(run)) };
    }),
  );
}

function impactByDay(findings: readonly Json[]): Map<string, bigint> {
  return new Map(
    findings
      .flatMap(({ days }) => days)
      .map((day: Json): [string, bigint] => [day.day, picoFromDecimal(day.impact_usd_exact) ?? -1n]),
  );
}

function expectOnly(one: PublishedCase, findings: readonly Json[]): void {
  expect(findings.map(({ kind, model }) => [kind, model])).toEqual([[one.fault.kind, one.model]]);
  expect(impactByDay(findings)).toEqual(excessByDay(one));
}

describe('the findings of two organizations with one model, one provider and the same days', () => {
  it('are separate, whichever data came first; a second run finds them again with the same digits and ids', async () => {
    await bringIn(reads, api);
    const first = await runGaps(api, '?period=90d', RUN_LIMIT_MS);
    const before = await findingsOf(api);
    expectOnly(reads, before);

    await bringIn(writes, other);
    expect(await findingsOf(other)).toEqual([]);
    await runGaps(api, '?period=90d', RUN_LIMIT_MS, other.adminKey);
    expectOnly(writes, await findingsOf(other));

    const second = await runGaps(api, '?period=90d', RUN_LIMIT_MS);
    expect(second.run_id).not.toBe(first.run_id);
    expect(await findingsOf(api)).toEqual(before);
  }, 300_000);

  it('are not shown to the other one', async () => {
    const [mine] = await findingsOf(api);
    const { status } = await api.get(`${FINDINGS}/${mine.id}`, other.adminKey);
    expect(status).toBe(404);
  });
});
