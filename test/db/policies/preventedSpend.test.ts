import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { supersedeEvents } from '../../../db/events/revisions.js';
import { OrgDb } from '../../../db/orgDb.js';
import {
  insertRule,
  type NewRule,
  type PreventedSums,
  RULES_SHOWN_MAX,
  removeRule,
  sumPreventedSpend,
} from '../../../db/policies/enforcementRules.js';
import { publicId } from '../../../domain/ids.js';
import { decimalFromPico } from '../../../domain/money.js';
import { isoFromMicros, microsOfDay } from '../../../domain/period.js';
import { anEvent, ingest } from '../../api/support/requests.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const START = microsOfDay('2026-03-01');
const SECOND = 1_000_000n;

interface Blocked {
  /** Seconds after START. */
  second: number;
  rule: string | null;
  pico: bigint | null;
  projectId: string | null;
}

const itemOf = ({ second, rule, pico, projectId }: Blocked) =>
  anEvent({
    status: 'blocked',
    timestamp: isoFromMicros(START + BigInt(second) * SECOND),
    blocked_rule_id: rule,
    prevented_usd: pico === null ? null : decimalFromPico(pico),
    project_id: projectId,
  });

const ruleOf = (id: string): NewRule => ({
  id,
  name: null,
  type: 'token_ceiling',
  config: { maxTokens: 1 },
  scope: { teamId: null, feature: null, model: null },
  enabled: true,
  mode: 'block',
  createdBy: 'test',
});

/** The same sums in plain code: every call is added to its rule's sums, one by one. */
function modelOf(calls: readonly Blocked[]) {
  const sums = new Map<string | null, PreventedSums>();
  for (const { rule, pico } of calls) {
    const sum = sums.get(rule) ?? { calls: 0, callsWithoutAmount: 0, preventedPico: 0n };
    sums.set(rule, {
      calls: sum.calls + 1,
      callsWithoutAmount: sum.callsWithoutAmount + (pico === null ? 1 : 0),
      preventedPico: sum.preventedPico + (pico ?? 0n),
    });
  }
  return sums;
}

const addUp = (parts: readonly PreventedSums[]): PreventedSums =>
  parts.reduce(
    (sum, part) => ({
      calls: sum.calls + part.calls,
      callsWithoutAmount: sum.callsWithoutAmount + part.callsWithoutAmount,
      preventedPico: sum.preventedPico + part.preventedPico,
    }),
    { calls: 0, callsWithoutAmount: 0, preventedPico: 0n },
  );

/** An organization with a rule, a removed one, and the texts that its calls may name. */
async function aPlace() {
  const org = await api.addOrganization();
  const stranger = await api.addOrganization();
  const [kept, removed, foreign] = [randomUUID(), randomUUID(), randomUUID()];
  await insertRule(org.orgDb, ruleOf(kept));
  await insertRule(org.orgDb, ruleOf(removed));
  await removeRule(org.orgDb, removed);
  await insertRule(stranger.orgDb, ruleOf(foreign));
  const texts = [kept, removed, foreign].map((id) => publicId('rul', id));
  return { org, kept, removed, texts: [...texts, 'budget of my own', 'rul_short', null] };
}

const seconds = fc.integer({ min: 0, max: 20 });
const amount = fc.option(fc.bigInt({ min: 0n, max: 10n ** 15n }), { freq: 4 });

it('sums the prevented dollars of the calls in the window, by rule and in total, to the last digit', async () => {
  const { org, kept, removed, texts } = await aPlace();
  const calls = fc.array(
    fc.record({
      second: seconds,
      rule: fc.constantFrom(...texts),
      pico: amount,
      projectId: fc.constantFrom(null, 'shop'),
    }),
    { minLength: 1, maxLength: 30 },
  );
  const stored: Blocked[] = [];
  await fc.assert(
    fc.asyncProperty(calls, seconds, seconds, async (more, one, other) => {
      await ingest(api, more.map(itemOf), org.ingestKey);
      // A call that was made is not counted, whatever it cost.
      await ingest(api, [anEvent({ timestamp: isoFromMicros(START), cost_usd: 5 })], org.ingestKey);
      stored.push(...more);
      const [from, to] = [Math.min(one, other), Math.max(one, other)];
      const window = { fromMicros: START + BigInt(from) * SECOND, toMicros: START + BigInt(to) * SECOND };
      const expected = modelOf(stored.filter(({ second }) => second >= from && second < to));
      const { totals, rules, others } = await sumPreventedSpend(org.orgDb, window);
      expect(new Map(rules.map(({ ruleText, rule: _rule, ...sums }) => [ruleText, sums]))).toEqual(expected);
      expect(totals).toEqual(addUp([...expected.values()]));
      expect(others).toBeNull();
      const amounts = rules.map(({ preventedPico }) => preventedPico);
      expect(amounts).toEqual([...amounts].sort((a, b) => (a < b ? 1 : a > b ? -1 : 0)));
      for (const { ruleText, rule } of rules) {
        const known = [kept, removed].find((id) => publicId('rul', id) === ruleText);
        expect(rule?.id).toBe(known);
      }
      const ofShop = await sumPreventedSpend(ofProject(org, 'shop'), window);
      const inShop = stored.filter(
        (call) => call.projectId === 'shop' && call.second >= from && call.second < to,
      );
      expect(ofShop.totals).toEqual(addUp([...modelOf(inShop).values()]));
    }),
    { numRuns: 25, seed: 22 },
  );
});

function ofProject({ orgDb }: TestOrganization, projectId: string) {
  return new OrgDb(orgDb.database, orgDb.orgId, { projectId });
}

it('is nothing, and not unknown, without a blocked call', async () => {
  const org = await api.addOrganization();
  expect(await sumPreventedSpend(org.orgDb, { fromMicros: START, toMicros: START + SECOND })).toEqual({
    totals: { calls: 0, callsWithoutAmount: 0, preventedPico: 0n },
    rules: [],
    others: null,
  });
});

it('leaves out a block that turned out to be a call that was made', async () => {
  const org = await api.addOrganization();
  const call = { second: 1, rule: null, pico: 7n, projectId: null };
  await ingest(api, [itemOf(call), itemOf({ ...call, second: 2 })], org.ingestKey);
  const { rows } = await api.database.superuser.query<{ id: string; timestamp: string }>(
    `select id, to_char(timestamp at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as timestamp from events where org_id = $1 order by 2`,
    [org.orgId],
  );
  const [loser, winner] = rows as [{ id: string; timestamp: string }, { id: string }];
  await org.orgDb.transaction((inside) =>
    supersedeEvents(inside, [{ ...loser, winnerId: winner.id, isNew: false }]),
  );
  const { totals } = await sumPreventedSpend(org.orgDb, { fromMicros: START, toMicros: START + 9n * SECOND });
  expect(totals).toEqual({ calls: 1, callsWithoutAmount: 0, preventedPico: 7n });
});

it(`names ${RULES_SHOWN_MAX} ids and adds the rest up, and both make the total`, async () => {
  const org = await api.addOrganization();
  const calls = Array.from({ length: RULES_SHOWN_MAX + 5 }, (_, index) => ({
    second: index,
    rule: `rule ${index}`,
    pico: index === 3 ? null : BigInt(index + 1),
    projectId: null,
  }));
  await ingest(api, calls.map(itemOf), org.ingestKey);
  const window = { fromMicros: START, toMicros: START + 86_400n * SECOND };
  const { totals, rules, others } = await sumPreventedSpend(org.orgDb, window);
  expect(rules).toHaveLength(RULES_SHOWN_MAX);
  expect(others).toEqual({ calls: 5, callsWithoutAmount: 1, preventedPico: 1n + 2n + 3n + 5n });
  expect(addUp([...rules, others as PreventedSums])).toEqual(totals);
  expect(totals).toEqual(addUp([...modelOf(calls).values()]));
});

it('is read by the index of blocked calls, however many others there are', async () => {
  const org = await api.addOrganization();
  await ingest(api, [itemOf({ second: 0, rule: null, pico: 1n, projectId: null })], org.ingestKey);
  const client = await api.database.superuser.connect();
  try {
    await client.query('begin; set local enable_seqscan = off');
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(
      `explain select sum(prevented_usd) from events where org_id = $1 and status = 'blocked' and superseded_by is null
         and timestamp >= '2026-03-01' and timestamp < '2026-03-20'`,
      [org.orgId],
    );
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    expect(plan).toMatch(/events_(\d{4}_\d{2}|\w+)_org_id_timestamp_idx/);
  } finally {
    await client.query('rollback');
    client.release();
  }
});
