import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { addPublishedDays, daysAgo, type PublishedDay, publishDays } from '../../support/publishedDays.js';
import { readBody } from '../support/requests.js';

const MATCHES = '/api/v1/reconciliation/matches';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});

afterAll(async () => {
  await api?.close();
});

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas
type Json = any;

const withDays = (days: readonly PublishedDay[]) => addPublishedDays(api, days);
const read = (org: TestOrganization, query = ''): Promise<Json> =>
  readBody(api, `${MATCHES}${query}`, org.adminKey);
const models = (body: Json): string[] => body.matches.map(({ model }: Json) => model);

const MIXED: PublishedDay[] = [
  { day: daysAgo(3), model: 'equal' },
  {
    day: daysAgo(3),
    model: 'more',
    status: 'partial',
    grade: 'MEDIUM',
    billedUsd: '10',
    ourUsd: '7.5',
    matchedUsd: '7.5',
  },
  {
    day: daysAgo(2),
    model: 'less',
    status: 'partial',
    grade: 'LOW',
    billedUsd: '4',
    ourUsd: '8',
    matchedUsd: '4',
  },
  {
    day: daysAgo(2),
    model: 'claude',
    provider: 'anthropic',
    account: 'org-2',
    status: 'unmatched',
    billedUsd: '3',
  },
];

describe('the list of matches', () => {
  it('has every status, the largest difference first, however it is signed', async () => {
    const body = await read(await withDays(MIXED));
    expect(models(body)).toEqual(['less', 'claude', 'more', 'equal']);
    expect(body.matches.map(({ delta_usd }: Json) => delta_usd)).toEqual([-4, 3, 2.5, 0]);
    expect(body).toMatchObject({ count: 4, offset: 0, has_more: false, next_cursor: null });
    expect(body.totals).toEqual({ matched_usd: 12.5, unmatched_usd: 5.5 });
  });

  it.each([
    ['?confidence=MEDIUM', ['more'], { matched_usd: 7.5, unmatched_usd: 2.5 }],
    ['?confidence=unverified', ['claude'], { matched_usd: 0, unmatched_usd: 3 }],
    ['?match_status=partial', ['less', 'more'], { matched_usd: 11.5, unmatched_usd: 2.5 }],
    ['?match_status=Matched', ['equal'], { matched_usd: 1, unmatched_usd: 0 }],
    ['?provider=anthropic', ['claude'], { matched_usd: 0, unmatched_usd: 3 }],
    ['?provider=ANTHROPIC', ['claude'], { matched_usd: 0, unmatched_usd: 3 }],
    ['?provider=nobody-known', [], { matched_usd: 0, unmatched_usd: 0 }],
    ['?provider_account_id=org-2', ['claude'], { matched_usd: 0, unmatched_usd: 3 }],
    ['?provider_account_id=org-1&confidence=low', ['less'], { matched_usd: 4, unmatched_usd: 0 }],
    [`?from=${daysAgo(2)}`, ['less', 'claude'], { matched_usd: 4, unmatched_usd: 3 }],
    [`?to=${daysAgo(3)}`, ['more', 'equal'], { matched_usd: 8.5, unmatched_usd: 2.5 }],
  ])('%s narrows records and totals alike', async (query, expected, totals) => {
    const body = await read(await withDays(MIXED), query);
    expect([models(body), body.totals]).toEqual([expected, totals]);
  });

  it('takes from and to as bounds of usage_start, both included', async () => {
    const org = await withDays([{ day: '2026-03-04' }, { day: '2026-03-05' }, { day: '2026-03-06' }]);
    const days = async (query: string) =>
      (await read(org, query)).matches.map((match: Json) => match.usage_start.slice(0, 10)).sort();
    expect(await days('?from=2026-03-05&to=2026-03-05')).toEqual(['2026-03-05']);
    expect(await days('?from=2026-03-04T00:00:01Z&to=2026-03-06T00:00:00Z')).toEqual([
      '2026-03-05',
      '2026-03-06',
    ]);
    expect(await days('?from=2026-03-04&to=2026-03-05T23:59:59.999999Z')).toEqual([
      '2026-03-04',
      '2026-03-05',
    ]);
    expect(await days('?to=2026-03-05')).toEqual(['2026-03-04', '2026-03-05']);
    expect(await days('?from=2026-03-06')).toEqual(['2026-03-06']);
  });

  it('covers by default the thirty UTC days that end with today', async () => {
    const org = await withDays([
      { day: daysAgo(0), model: 'today' },
      { day: daysAgo(29), model: 'first' },
      { day: daysAgo(30), model: 'older' },
    ]);
    expect(models(await read(org)).sort()).toEqual(['first', 'today']);
  });

  it('shows nothing of hours, of unpublished runs, and of days that another run has taken over', async () => {
    const org = await withDays([
      { day: daysAgo(2), model: 'first' },
      { day: daysAgo(2), model: 'first', hour: 5 },
    ]);
    await publishDays(api.database, org.orgId, [{ day: daysAgo(2), model: 'second' }]);
    const hidden = await publishDays(api.database, org.orgId, [{ day: daysAgo(1), model: 'hidden' }]);
    await api.database.superuser.query('delete from gap_published where org_id = $1 and run_id = $2', [
      org.orgId,
      hidden,
    ]);
    expect(models(await read(org))).toEqual(['second']);
  });
});

describe('a page of matches', () => {
  /** Many of them with the same difference, as equal days have. */
  const MANY: PublishedDay[] = Array.from({ length: 47 }, (_, at) => ({
    day: daysAgo(1 + (at % 5)),
    model: `model-${at}`,
    status: at % 3 === 0 ? 'matched' : 'partial',
    billedUsd: '10',
    ourUsd: at % 3 === 0 ? '10' : String(10 - (at % 2)),
    matchedUsd: '9',
  }));

  it('by page, cursor or offset, every record comes once, in the order of the whole', async () => {
    const org = await withDays(MANY);
    const whole = (await read(org, '?limit=1000')).matches.map(({ id }: Json) => id);
    expect(new Set(whole).size).toBe(MANY.length);
    for (const limit of [1, 7, 46, 47]) {
      const byCursor: string[] = [];
      const byOffset: string[] = [];
      let query = `?limit=${limit}`;
      for (;;) {
        const body = await read(org, query);
        byCursor.push(...body.matches.map(({ id }: Json) => id));
        expect(body.totals).toEqual({ matched_usd: 423, unmatched_usd: 47 });
        expect(body.has_more).toBe(body.next_cursor !== null);
        if (!body.has_more) break;
        query = `?limit=${limit}&cursor=${body.next_cursor}`;
      }
      for (let offset = 0; offset < MANY.length; offset += limit)
        byOffset.push(
          ...(await read(org, `?limit=${limit}&offset=${offset}`)).matches.map(({ id }: Json) => id),
        );
      expect(byCursor).toEqual(whole);
      expect(byOffset).toEqual(whole);
    }
  });

  it('ties are ordered by id', async () => {
    const body = await read(await withDays(MANY), '?match_status=matched');
    const ids = body.matches.map(({ id }: Json) => id);
    expect(ids).toEqual([...ids].sort());
  });

  it.each([
    ['?confidence=sure', 'confidence'],
    ['?confidence=', 'confidence'],
    ['?match_status=unknown', 'match_status'],
    ['?from=yesterday', 'from'],
    ['?limit=1001', 'limit'],
    ['?limit=0', 'limit'],
    ['?offset=-1', 'offset'],
    ['?cursor=abc', 'cursor'],
    [`?cursor=${Buffer.from('["1","x"]').toString('base64url')}`, 'cursor'],
    [`?cursor=${Buffer.from(`["1e9","${randomUUID()}"]`).toString('base64url')}`, 'cursor'],
  ])('%s is refused', async (query, field) => {
    const { status, body } = await api.get(`${MATCHES}${query}`);
    expect([status, body.code, body.errors[0].field]).toEqual([400, 'invalid_parameter', field]);
  });

  it('a window that is turned round is refused, one at the end of time is not', async () => {
    const { status, body } = await api.get(`${MATCHES}?from=2026-03-06&to=2026-03-05`);
    expect([status, body.code]).toEqual([400, 'invalid_range']);
    expect((await api.get(`${MATCHES}?from=1000-01-01&to=9999-12-31T23:59:59.999999Z`)).status).toBe(200);
  });
});

const CELLS = [
  {
    tokenClass: 'input',
    billedQuantity: '3000000',
    observedQuantity: '1000000',
    billedPico: '6',
    expectedOfBilledPico: '3',
    expectedOfObservedPico: '1',
    split: 'bill',
    rows: 2,
  },
  {
    tokenClass: 'output',
    billedQuantity: '500',
    observedQuantity: '500',
    billedPico: '0.25',
    expectedOfBilledPico: '0.25',
    expectedOfObservedPico: '0.25',
    split: 'bill',
    rows: 1,
  },
];

describe('a record', () => {
  const DAY: PublishedDay = {
    day: '2026-03-05',
    status: 'partial',
    billedUsd: '6.25',
    ourUsd: '1.25',
    matchedUsd: '1.25',
    rateUsd: '3',
    volumeUsd: '2',
    ownUsd: '0',
    provisional: true,
    eventCount: 12,
    cells: CELLS,
    waterfall: [{ signal: 'prior', level: 'blocked_pair', bits: 1 }],
  };
  const MARCH = '?from=2026-03-01&to=2026-03-31';

  it('shows what was billed and seen, class by class, and why they differ', async () => {
    const org = await withDays([DAY]);
    const [match] = (await read(org, MARCH)).matches;
    expect(match).toEqual({
      id: expect.stringMatching(/^mat_[0-9a-f]{32}$/),
      provider: 'openai',
      provider_account_id: 'org-1',
      model: 'gpt-6-sol',
      match_status: 'partial',
      confidence: 'HIGH',
      confidence_score: 0.99,
      provider_cost_usd: 6.25,
      our_cost_usd: 1.25,
      delta_usd: 5,
      quantity: 3_000_500,
      unit: 'tokens',
      description: 'gpt-6-sol: input, output',
      usage_start: '2026-03-05T00:00:00Z',
      usage_end: '2026-03-06T00:00:00Z',
      invoice_id: null,
      invoice_line_id: null,
      event_count: 12,
      reasons: ['provisional', 'rate_differs', 'quantities_differ'],
      dispute_id: null,
      run_id: `run_${org.runId.replaceAll('-', '')}`,
      created_at: expect.stringMatching(/^\d{4}-/),
      provisional: true,
      visibility: 'V2',
      gap_parts: { rate_usd: 3, volume_usd: 2, own_pricing_usd: 0 },
      lines: [
        {
          token_class: 'input',
          billed_quantity: 3_000_000,
          observed_quantity: 1_000_000,
          billed_usd: 6,
          expected_usd: 3,
          observed_usd: 1,
          bill_rows: 2,
        },
        {
          token_class: 'output',
          billed_quantity: 500,
          observed_quantity: 500,
          billed_usd: 0.25,
          expected_usd: 0.25,
          observed_usd: 0.25,
          bill_rows: 1,
        },
      ],
      waterfall: [{ signal: 'prior', level: 'blocked_pair', bits: 1 }],
      findings: [],
    });
  });

  it('keeps its id from run to run; another account, model, day or organization has another', async () => {
    const first = await withDays([DAY]);
    const [before] = (await read(first, MARCH)).matches;
    const again = await publishDays(api.database, first.orgId, [{ ...DAY, status: 'unmatched' }]);
    const [after] = (await read(first, MARCH)).matches;
    expect([after.id, after.run_id]).toEqual([before.id, `run_${again.replaceAll('-', '')}`]);
    const others = await withDays([
      DAY,
      { ...DAY, account: 'org-2' },
      { ...DAY, model: 'gpt-6-terra' },
      { ...DAY, provider: 'anthropic' },
      { ...DAY, day: '2026-03-06' },
      // The boundary between the two names is part of the id.
      { ...DAY, account: 'org-1/gpt', model: '6-sol' },
      { ...DAY, account: 'org-1', model: 'gpt/6-sol' },
    ]);
    const ids = (await read(others, MARCH)).matches.map(({ id }: Json) => id);
    expect(new Set([before.id, ...ids]).size).toBe(8);
  });

  it('names the findings that have part in its day, with that day’s impact', async () => {
    const org = await withDays([DAY, { ...DAY, day: '2026-03-06' }, { ...DAY, day: '2026-03-07' }]);
    const finding = await addFinding(org, {
      first: '2026-03-05',
      last: '2026-03-06',
      days: [
        ['2026-03-05', '3'],
        ['2026-03-06', '2'],
      ],
    });
    await addFinding(org, {
      first: '2026-03-05',
      last: '2026-03-05',
      days: [['2026-03-05', '9']],
      status: 'gone',
    });
    const byDay = new Map<string, Json>(
      (await read(org, MARCH)).matches.map((match: Json) => [match.usage_start.slice(8, 10), match.findings]),
    );
    const expected = {
      id: `fnd_${finding.replaceAll('-', '')}`,
      kind: 'cache_read_rate_mismatch',
      direction: 'overcharge',
      confidence: 'HIGH',
      status: 'open',
    };
    expect(byDay.get('05')).toEqual([{ ...expected, impact_usd: 3 }]);
    expect(byDay.get('06')).toEqual([{ ...expected, impact_usd: 2 }]);
    expect(byDay.get('07')).toEqual([]);
  });

  it('of another organization is not found', async () => {
    await withDays([DAY]);
    const other = await api.addOrganization();
    expect((await read(other, MARCH)).matches).toEqual([]);
  });

  it('from before calls were counted with it marks their number as unknown', async () => {
    const [match] = (await read(await withDays([{ ...DAY, eventCount: null }]), MARCH)).matches;
    expect(match.event_count).toBe(null);
  });
});

async function addFinding(
  org: TestOrganization & { runId: string },
  finding: { first: string; last: string; days: [string, string][]; status?: string },
): Promise<string> {
  const id = randomUUID();
  const impact = finding.days.reduce((sum, [, usd]) => sum + Number(usd), 0);
  await api.database.superuser.query(
    `insert into findings (org_id, id, run_id, provider, provider_account_id, model, kind, variant, direction, blame, claimable, first_day, last_day,
       billed_usd, expected_usd, impact_usd, recoverable_usd, grade, probability, match_probability, visibility, provisional, critical,
       missing_gates, lines, waterfall, cause, reason, advice, weight_set, status, decided_at)
     values ($1, $2, $3, 'openai', 'org-1', 'gpt-6-sol', 'cache_read_rate_mismatch', 'x', 'overcharge', 'provider', true, $4, $5,
       $6, 0, $6, $6, 'HIGH', 0.99, 0.99, 'V3', false, false, '[]', '[]', '[]', 'because', 'because', '[]', 'test', $7, case when $7 = 'open' then null else now() end)`,
    [org.orgId, id, org.runId, finding.first, finding.last, impact, finding.status ?? 'open'],
  );
  for (const [day, usd] of finding.days)
    await api.database.superuser.query(
      `insert into finding_days (org_id, finding_id, day, billed_usd, expected_usd, impact_usd, rate_usd, volume_usd, own_pricing_usd, probability)
       values ($1, $2, $3, $4, 0, $4, $4, 0, 0, 0.99)`,
      [org.orgId, id, day, usd],
    );
  return id;
}
