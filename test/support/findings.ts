import { randomUUID } from 'node:crypto';
import type { OrgDb } from '../../db/orgDb.js';
import type { FindingStatus } from '../../domain/claims/financialSummary.js';
import { decimalFromPico, PICO_PER_USD, type Pico } from '../../domain/money.js';
import {
  type Finding,
  type FindingDay,
  linesToText,
  reasonOf,
} from '../../domain/reconciliation/engine/index.js';

/** A day with this overcharge, wholly by the rate. */
export function aFindingDay(day: string, impactPico: Pico, parts: Partial<FindingDay> = {}): FindingDay {
  const billedPico = 1_000n * PICO_PER_USD;
  return {
    day,
    billedPico,
    expectedPico: billedPico - impactPico,
    impactPico,
    ratePico: impactPico,
    volumePico: 0n,
    ownPricingPico: 0n,
    probability: 0.9,
    ...parts,
  };
}

export type FindingToStore = Partial<Omit<Finding, 'impactPico' | 'recoverablePico'>> & {
  id?: string;
  status?: FindingStatus;
};

/** A claimable overcharge of $12.345 on one day, graded HIGH; sums follow from the days. */
export function aFinding(given: FindingToStore = {}): Finding & { id: string; status: FindingStatus } {
  const days = given.days ?? [aFindingDay('2026-03-10', 12_345_000_000_000n)];
  const direction = given.direction ?? 'overcharge';
  const kind = given.kind ?? 'cache_read_rate_mismatch';
  const blame = given.blame ?? (kind === 'unexplained' ? 'none' : 'provider');
  const claimable = given.claimable ?? (blame === 'provider' && kind !== 'unexplained');
  const impactPico = days.reduce((sum, day) => sum + day.impactPico, 0n);
  return {
    id: randomUUID(),
    status: 'open',
    variant: 'full_rate',
    provider: 'openai',
    accountId: 'acc-1',
    model: 'gpt-4o',
    lines: [
      {
        tokenClass: 'cache_read',
        serviceTier: '',
        isBatch: null,
        longContext: null,
        region: null,
        billedQuantity: 10n ** 21n,
        observedQuantity: 10n ** 21n,
        billedRate: 2n * PICO_PER_USD,
        expectedRate: PICO_PER_USD,
        billedPico: 1_000n * PICO_PER_USD,
        expectedPico: 500n * PICO_PER_USD,
      },
    ],
    grade: 'HIGH',
    probability: 0.97,
    matchProbability: 0.99,
    visibility: 'V3',
    provisional: false,
    missing: [],
    next: { kind: 'list_rate_mismatch', odds: 40 },
    waterfall: [{ signal: 'prior', level: 'kind', bits: -3 }],
    cause: 'Cached input was charged at the full rate.',
    advice: ['Ask the provider for the rate of its price list.'],
    critical: false,
    weightSet: 'default-1',
    ...given,
    kind,
    direction,
    blame,
    claimable,
    days,
    impactPico,
    recoverablePico: claimable && direction === 'overcharge' && impactPico > 0n ? impactPico : 0n,
  };
}

/** A run of an organization that findings can be of; its id. */
export async function storeRun(orgDb: OrgDb): Promise<string> {
  const id = randomUUID();
  await orgDb.run(
    `insert into gap_runs (org_id, id, period, status, window_start, window_end, finished_at)
     values ($1, $2, '30d', 'succeeded', '2026-03-01', '2026-03-31', now())`,
    [orgDb.orgId, id],
  );
  return id;
}

/** Stores findings as a run publishes them; their ids in the same order. */
export async function storeFindings(
  orgDb: OrgDb,
  given: readonly FindingToStore[],
  runId?: string,
): Promise<string[]> {
  return orgDb.transaction(async (inside) => {
    const run = runId ?? (await storeRun(inside));
    const ids: string[] = [];
    for (const one of given) ids.push(await storeFinding(inside, aFinding(one), run));
    return ids;
  });
}

async function storeFinding(
  inside: OrgDb,
  finding: Finding & { id: string; status: FindingStatus },
  runId: string,
): Promise<string> {
  const sum = (part: (day: FindingDay) => Pico) =>
    decimalFromPico(finding.days.reduce((total, day) => total + part(day), 0n));
  const isDecided = finding.status !== 'open';
  await inside.run(
    `insert into findings (org_id, id, run_id, provider, provider_account_id, model, kind, variant, direction, blame, claimable,
       first_day, last_day, billed_usd, expected_usd, impact_usd, recoverable_usd, grade, probability, match_probability, visibility,
       provisional, critical, missing_gates, next_best, lines, waterfall, cause, reason, advice, weight_set, status, decided_at, decided_by)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26,
       $27, $28, $29, $30, $31, $32, case when $33::boolean then now() end, case when $33::boolean then 'test' end)`,
    [
      ...[inside.orgId, finding.id, runId, finding.provider, finding.accountId, finding.model, finding.kind],
      ...[finding.variant, finding.direction, finding.blame, finding.claimable],
      ...[finding.days[0]?.day ?? '', finding.days.at(-1)?.day ?? ''],
      ...[sum((day) => day.billedPico), sum((day) => day.expectedPico), sum((day) => day.impactPico)],
      ...[decimalFromPico(finding.recoverablePico), finding.grade, finding.probability],
      ...[finding.matchProbability, finding.visibility, finding.provisional, finding.critical],
      ...[JSON.stringify(finding.missing), finding.next && JSON.stringify(finding.next)],
      ...[JSON.stringify(linesToText(finding.lines)), JSON.stringify(finding.waterfall)],
      ...[finding.cause, reasonOf(finding, finding.days)],
      ...[JSON.stringify(finding.advice), finding.weightSet, finding.status, isDecided],
    ],
  );
  for (const day of finding.days)
    await inside.run(
      `insert into finding_days (org_id, finding_id, day, billed_usd, expected_usd, impact_usd, rate_usd, volume_usd, own_pricing_usd, probability)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
      [
        ...[inside.orgId, finding.id, day.day],
        ...[day.billedPico, day.expectedPico, day.impactPico].map(decimalFromPico),
        ...[day.ratePico, day.volumePico, day.ownPricingPico].map(decimalFromPico),
        day.probability,
      ],
    );
  return finding.id;
}
