import { describe, expect, it } from 'vitest';
import type {
  ClaimEvidence,
  EvidenceCell,
  EvidenceSample,
} from '../../../domain/claims/evidence/claimEvidence.js';
import type { LabelledRow } from '../../../domain/claims/ticketDraft.js';
import { draftTicket, type TicketFacts } from '../../../domain/claims/ticketDraft.js';
import { microsOfDay } from '../../../domain/period.js';

const cell = (day: string, parts: Partial<EvidenceCell> = {}): EvidenceCell => ({
  ...{ dispute_id: 'dsp_1', day, model: 'gpt-4o-mini', token_class: 'cache_read', service_tier: 'standard' },
  ...{ is_batch: null, long_context: false, region: null, observed_quantity: null, basis: 'rates' },
  ...{
    billed_quantity: '1000000',
    right_quantity: '1000000',
    billed_rate_usd: 0.15,
    expected_rate_usd: 0.075,
  },
  ...{ billed_usd: 0.15, billed_usd_exact: '0.15', expected_usd: 0.075, expected_usd_exact: '0.075' },
  ...{ difference_usd: 0.075, difference_usd_exact: '0.075', rate_usd_exact: '0.075', volume_usd_exact: '0' },
  ...{ parts: [{ quantity: '1000000', rate: 'r1' }], page_usd_exact: null, rows: [], quantity_rows: [] },
  ...{ usage_report_quantity: null, usage_report_rows: [] },
  ...parts,
});

const sample = (at: number): EvidenceSample => ({
  ...{ request_id: at === 0 ? null : `req_${at}`, day: '2026-03-10', timestamp: '2026-03-10T10:00:00Z' },
  ...{ end_at: '2026-03-10T10:00:01Z', model: 'gpt-4o-mini', response_model: 'gpt-4o-mini-2024-07-18' },
  ...{ service_tier: null, status: 'ok', http_status: 200, usage: { input_tokens: at } },
});

const totals = (netted: string) => ({
  ...{ billed_usd_exact: '1234.5', expected_usd_exact: '617.25', disputed_usd_exact: '617.25' },
  netted_usd_exact: netted,
});

/** The parts of evidence that a ticket reads. */
const evidenceOf = (parts: object = {}): ClaimEvidence =>
  ({
    cells: [
      cell('2026-03-10'),
      cell('2026-03-11'),
      cell('2026-03-10', { model: 'o3', billed_usd_exact: '9' }),
    ],
    pricing_snapshot: {
      rates: [
        {
          ...{ id: 'r1', usd_per_mtok: 0.075, effective_from: '2024-07-18', kind: 'list', contract: null },
          ...{ retrieved_on: '2026-05-01', source_keys: ['a'], price_page_url: 'https://openai.com/prices' },
        },
      ],
      sources: [{ key: 'a', name: 'A list', url: null }],
    },
    invoice_refs: [
      {
        ...{
          source_id: 'imp_1',
          filename: 'march.csv',
          invoice_id: 'INV-7',
          fetched_at: '2026-04-02T00:00:00Z',
        },
        ...{ period_start: '2026-03-01', period_end: '2026-03-31' },
      },
    ],
    samples: Array.from({ length: 30 }, (_, at) => sample(at)),
    totals: totals('0'),
    notes: [],
    ...parts,
  }) as unknown as ClaimEvidence;

const row: LabelledRow = {
  ...{ day: '2026-03-10', model: 'gpt-4o-mini-2024-07-18', lineItem: 'gpt-4o-mini-2024-07-18, cached input' },
  ...{ tokenClass: 'cache_read', isBatch: null, longContext: false, region: null, project: 'proj_1' },
};

const at = (day: string) => microsOfDay(day);
const NOTHING = { denialReason: null, creditIssuedCents: null, externalTicketId: null };

const facts = (parts: Partial<TicketFacts> = {}): TicketFacts => ({
  claim: {
    ...{ id: '00000000-0000-7000-8000-000000000001', provider: 'openai', accountId: 'org-1' },
    ...{ periodStart: '2026-03-10', periodEnd: '2026-03-11', recoverableCents: 61_725 },
    ...{ externalTicketId: 'T-1', evidenceStaleAtMicros: null },
  },
  organization: 'Acme',
  events: [
    { to: 'draft', atMicros: at('2026-04-01'), fields: NOTHING },
    {
      to: 'submitted_to_provider',
      atMicros: at('2026-04-02'),
      fields: { ...NOTHING, externalTicketId: 'T-1' },
    },
    {
      to: 'escalated',
      atMicros: at('2026-04-20'),
      fields: { ...NOTHING, denialReason: 'works as designed' },
    },
  ],
  disputes: [
    {
      ...{ id: 'd', model: 'gpt-4o-mini', periodStart: '2026-03-10', periodEnd: '2026-03-11' },
      ...{ amountCents: 61_725, reason: 'Cached tokens were charged as fresh input.', clockHours: 0 },
    },
  ],
  credits: [],
  evidence: evidenceOf(),
  rows: [row],
  ...parts,
});

const body = (parts?: Partial<TicketFacts>) => draftTicket(facts(parts)).body;

describe('a ticket', () => {
  it('names account, invoice, period, meters as billed, rates, sums, calls and correspondence', () => {
    const text = body();
    for (const part of [
      'This is about ticket T-1.',
      'OpenAI account: org-1',
      'Invoices: INV-7',
      'Billing data: march.csv, 2026-03-01 to 2026-03-31, received 2026-04-02',
      'Projects on these lines: proj_1',
      'Period by the days of the bill, UTC: 2026-03-10 00:00 up to 2026-03-12 00:00',
      'Period in UTC: 2026-03-10T00:00:00Z up to 2026-03-12T00:00:00Z',
      '2. gpt-4o-mini, cache read, 2026-03-10 to 2026-03-11 (2 days)',
      'Line item as billed: "gpt-4o-mini-2024-07-18, cached input"',
      'Quantity billed: 2,000,000 tokens',
      'Unit price charged: $0.15 per million tokens',
      'Amount charged: $0.30',
      'Expected: $0.075 per million tokens = $0.15',
      'Published rate: $0.075 per million tokens, in force since 2024-07-18, read on 2026-05-01 (https://openai.com/prices, A list)',
      'Charged: $1,234.50',
      'Asked for: $617.25 (rounded down to the cent)',
      '- 2026-04-02: claim sent to you; ticket T-1',
      '- 2026-04-20: escalated; your answer: "works as designed"',
      'Issue a credit of $617.25 for 2026-03-10 to 2026-03-11.',
    ])
      expect(text).toContain(part);
    expect(text).not.toContain('charged too little');
  });

  it('lists the largest difference first, and at least 20 calls, those with a request id alone where there are any', () => {
    const text = body();
    expect(text.indexOf('1. o3')).toBeGreaterThan(0);
    const ids = text.match(/^- req_\d+/gm) ?? [];
    expect(ids).toHaveLength(25);
    expect(text).not.toContain('no request id was kept');
    expect(body({ evidence: evidenceOf({ samples: [sample(0)] }) })).toContain('no request id was kept');
  });

  it('writes every rate alike: two digits behind the point at least, six at most, thousands apart', () => {
    const rated = (billed: number | null, expected: number, model: string) =>
      cell('2026-03-10', { model, billed_rate_usd: billed, expected_rate_usd: expected });
    const text = body({
      evidence: evidenceOf({
        cells: [
          rated(5, 4.4, 'a'),
          rated(0.05, 0.044, 'b'),
          rated(1234.5, 1.4784924, 'c'),
          rated(null, 0.000001, 'd'),
        ],
      }),
    });
    expect(text.match(/\$\S+ per million|not on the bill/g)?.toSorted()).toEqual(
      [
        ...['$5.00', '$4.40', '$0.05', '$0.044', '$1,234.50', '$1.478492', '$0.000001'],
        // The published rate of each line.
        ...['$0.075', '$0.075', '$0.075', '$0.075'],
      ]
        .map((rate) => `${rate} per million`)
        .concat('not on the bill')
        .toSorted(),
    );
  });

  it('states for several rates on one line what each of them is for', () => {
    const rate = (id: string, tier: string, usd: number) => ({
      ...{ id, usd_per_mtok: usd, effective_from: null, kind: 'list', contract: null, retrieved_on: null },
      ...{ source_keys: [], price_page_url: null, service_tier: tier, is_batch: false, region: null },
    });
    const mixed = cell('2026-03-10', {
      ...{ billed_rate_usd: 0.15, expected_rate_usd: null, right_quantity: '500000' },
      parts: [
        { quantity: '400000', rate: 'r1' },
        { quantity: '600000', rate: 'r2' },
      ],
    });
    const pricing_snapshot = { rates: [rate('r1', 'standard', 0.1), rate('r2', 'flex', 0.05)], sources: [] };
    const text = body({ evidence: evidenceOf({ cells: [mixed], pricing_snapshot }) });
    expect(text).toContain('Unit price charged: $0.15 per million tokens on average');
    expect(text).toContain('Expected: 500,000 tokens at the rates below = $0.075');
    expect(text).toContain('Published rate for the standard tier: $0.10 per million tokens');
    expect(text).toContain('Published rate for the flex tier: $0.05 per million tokens');
  });

  it('names calls of every disputed model, also where one model has more than a ticket lists', () => {
    const many = Array.from({ length: 30 }, (_, at) => sample(at));
    const other = { ...sample(31), model: 'o3', response_model: null, request_id: 'req_of_o3' };
    const unnamed = { ...sample(32), model: 'o4', response_model: null, request_id: null };
    const text = body({ evidence: evidenceOf({ samples: [...many, other, unnamed] }) });
    expect(text).toMatch(/^- req_of_o3 {2}\S+ {2}o3 {2}ok/m);
    expect(text).toMatch(/^- \(no request id was kept\) {2}\S+ {2}o4 {2}ok/m);
    expect(text.match(/^- req_\d+/gm)).toHaveLength(23);
    const models = Array.from({ length: 28 }, (_, at) => ({ ...sample(at), model: `m-${at}` }));
    expect(body({ evidence: evidenceOf({ samples: models }) }).match(/^- .* usage /gm)).toHaveLength(28);
  });

  it('names the parts of an account as the provider does', () => {
    const of = (provider: string) => body({ claim: { ...facts().claim, provider } });
    expect(of('openai')).toContain('\nProjects on these lines: proj_1\n');
    expect(of('anthropic')).toContain('\nWorkspaces on these lines: proj_1\n');
    expect(of('anthropic')).not.toContain('Project');
    expect(of('azure_openai')).toContain('\nResources on these lines: proj_1\n');
  });

  it('names the files to attach as they are downloaded', () => {
    const name = 'clm_00000000000070008000000000000001-evidence';
    for (const extension of ['pdf', 'csv', 'tar.gz']) expect(body()).toContain(`\n- ${name}.${extension}: `);
  });

  it('lists what counts against it: what was netted, restated or credited since', () => {
    const claim = { ...facts().claim, evidenceStaleAtMicros: at('2026-04-10') };
    const credits = [{ cents: 500, rows: [{ day: '2026-04-09', description: 'Goodwill' }] }];
    const text = body({ claim, credits, evidence: evidenceOf({ totals: totals('0.5') }) });
    expect(text).toContain('Less what was charged too little in the same months: $0.50');
    expect(text).toContain('You have billed some of these days otherwise since 2026-04-10');
    expect(text).toContain('A credit of $5.00 (2026-04-09, "Goodwill") is on a later bill');
  });

  it('names a clock that was estimated as such, with the times in UTC that follow from it', () => {
    const shown = (clockHours: number) =>
      body({ disputes: facts().disputes.map((one) => ({ ...one, clockHours })) });
    expect(shown(-8)).toContain(
      'of the bill, UTC-8 as estimated from your bill and our calls: 2026-03-10 00:00',
    );
    expect(shown(-8)).toContain('Period in UTC: 2026-03-10T08:00:00Z up to 2026-03-12T08:00:00Z');
    expect(shown(2)).toContain(
      'of the bill, UTC+2 as estimated from your bill and our calls: 2026-03-10 00:00',
    );
    expect(shown(2)).toContain('Period in UTC: 2026-03-09T22:00:00Z up to 2026-03-11T22:00:00Z');
  });

  it('shows the days of a bill in Pacific Time with their times in UTC too', () => {
    const claim = { ...facts().claim, provider: 'google', externalTicketId: null };
    const { subject, body: text } = draftTicket(facts({ claim }));
    expect(text).toContain('Pacific Time (America/Los_Angeles): 2026-03-10 00:00 up to 2026-03-12 00:00');
    expect(text).toContain('Period in UTC: 2026-03-10T07:00:00Z up to 2026-03-12T07:00:00Z');
    expect(text).toContain('Please open a ticket for this');
    expect(subject).toBe(
      'Escalation: overcharge of $617.25 on the Google bill of account org-1, 2026-03-10 to 2026-03-11',
    );
  });

  it('is whole without evidence of this version: disputes, sum and correspondence', () => {
    const text = body({ evidence: undefined, rows: [] });
    expect(text).toContain('- gpt-4o-mini, 2026-03-10 to 2026-03-11, $617.25: Cached tokens');
    expect(text).not.toContain('REQUESTS THAT YOU CAN LOOK UP');
  });
});
