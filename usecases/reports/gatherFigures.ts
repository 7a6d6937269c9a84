import { listClaimsOver } from '../../db/claims/claims.js';
import type { OrgDb } from '../../db/orgDb.js';
import { sumAlerts } from '../../db/policies/alerts.js';
import { listRules, sumPreventedSpend } from '../../db/policies/enforcementRules.js';
import { listPolicies } from '../../db/policies/policies.js';
import { sumMonth } from '../../db/reconciliation/gapExplorer.js';
import { shiftDay } from '../../domain/period.js';
import type {
  ChargebackFigures,
  EnforcementFigures,
  ModeledFigures,
  ReconciliationFigures,
  ReportFigures,
  SpendFigures,
  ViolationFigures,
} from '../../domain/reports/figures.js';
import { periodBefore, type ReportPeriod, windowOfPeriod } from '../../domain/reports/report.js';
import { readFinancialSummary } from '../claims/financialSummary.js';
import { readSavings, standardPeriod } from '../policies/savings.js';
import { readChargeback } from '../usage/chargeback.js';
import { foldWhenBehind, sumUsageAsOf, type UsageBooks } from '../usage/usage.js';

/** Groups of one answer of the API; a report sums the rest as the API does. */
const GROUPS_MAX = 1_000;
/** Days of the longest period, and claims of one report. */
const DAYS_MAX = 400;
const CLAIMS_MAX = 1_000;

/** The figures of a period and of the period before it, from one snapshot; the API answers the same. */
export async function gatherFigures(
  orgDb: OrgDb,
  period: ReportPeriod,
  nowMicros: bigint,
): Promise<ReportFigures> {
  await foldWhenBehind(orgDb);
  const previous = periodBefore(period);
  return orgDb.transaction(async (inside) => {
    const at = { period, previous, nowMicros };
    return {
      period,
      previous,
      asOfMicros: nowMicros,
      spend: await gatherSpend(inside, at),
      violations: await gatherViolations(inside, at),
      enforcement: await gatherEnforcement(inside, at),
      reconciliation: await gatherReconciliation(inside, at),
    };
  }, 'repeatable read');
}

interface At {
  period: ReportPeriod;
  previous: ReportPeriod;
  nowMicros: bigint;
}

function sumBy(
  inside: OrgDb,
  dimension: 'model' | 'day',
  period: ReportPeriod,
  nowMicros: bigint,
): Promise<UsageBooks> {
  const question = { asOf: undefined, ...windowOfPeriod(period), names: ['from', 'to'] as const, nowMicros };
  const limit = dimension === 'day' ? DAYS_MAX : GROUPS_MAX;
  return sumUsageAsOf(inside, question, { dimension, filter: {}, limit });
}

async function gatherSpend(inside: OrgDb, { period, previous, nowMicros }: At): Promise<SpendFigures> {
  const models = await sumBy(inside, 'model', period, nowMicros);
  return {
    models,
    previousModels: await sumBy(inside, 'model', previous, nowMicros),
    days: await sumBy(inside, 'day', period, nowMicros),
    previousDays: await sumBy(inside, 'day', previous, nowMicros),
    chargeback: await gatherChargeback(inside, period, nowMicros),
    adjustmentsPico: models.adjustments?.reduce((sum, { costPico }) => sum + costPico, 0n) ?? null,
  };
}

async function gatherChargeback(
  inside: OrgDb,
  period: ReportPeriod,
  nowMicros: bigint,
): Promise<ChargebackFigures> {
  const window = { ...windowOfPeriod(period), names: ['start_date', 'end_date'] as const };
  const question = {
    asOf: undefined,
    ...window,
    nowMicros,
    dimension: 'team_id',
    allocation: undefined,
  } as const;
  const { buckets, totalCents, allocated, allocation } = await readChargeback(inside, question);
  return { buckets, totalCents, allocated, allocation };
}

async function gatherViolations(inside: OrgDb, { period, previous }: At): Promise<ViolationFigures> {
  const before = await sumAlerts(inside, windowOfPeriod(previous));
  return {
    alerts: await sumAlerts(inside, windowOfPeriod(period)),
    previousAlerts: before.reduce((sum, { alerts }) => sum + alerts, 0),
    policies: (await listPolicies(inside)).map(({ type, enabled }) => ({ type, enabled })),
  };
}

async function gatherEnforcement(inside: OrgDb, at: At): Promise<EnforcementFigures> {
  const { totals, rules, others } = await sumPreventedSpend(inside, windowOfPeriod(at.period));
  const before = await sumPreventedSpend(inside, windowOfPeriod(at.previous));
  const enabled = (await listRules(inside)).filter((rule) => rule.enabled);
  return {
    ...totals,
    rules: [
      ...rules.map(({ rule, ruleText, calls, preventedPico }) => ({
        name: rule ? ruleName(rule) : (ruleText ?? 'No rule named'),
        calls,
        preventedPico,
      })),
      ...(others ? [{ name: 'Other rules', calls: others.calls, preventedPico: others.preventedPico }] : []),
    ],
    previousPreventedPico: before.totals.preventedPico,
    blocking: enabled.filter(({ mode }) => mode === 'block').length,
    observing: enabled.filter(({ mode }) => mode === 'observe').length,
    modeled: await gatherModeled(inside, at),
  };
}

const ruleName = ({ name, type }: { name: string | null; type: string }): string =>
  name ?? type.replaceAll('_', ' ');

/** The modeled savings of the newest run over exactly this period, else over the last 30 days; null without a result. */
async function gatherModeled(inside: OrgDb, { period, nowMicros }: At): Promise<ModeledFigures | null> {
  const { fromMicros, toMicros } = windowOfPeriod(period);
  const own = { isStandard: false, windowStartMicros: fromMicros, windowEndMicros: toMicros };
  for (const wanted of [own, standardPeriod(nowMicros)]) {
    const { result } = await readSavings(inside, wanted);
    if (!result || result.run.savedPico === null) continue;
    const { run, rules } = result;
    return {
      fromMicros: run.windowStartMicros,
      toMicros: run.windowEndMicros,
      isOfPeriod: !wanted.isStandard,
      asOfMicros: run.asOfMicros ?? run.createdAtMicros,
      savedPico: result.run.savedPico,
      rules: rules.map(({ rule, findings }) => ({
        name: ruleName(rule),
        calls: findings.blocked + findings.downgraded,
        savedPico: findings.savedPico,
      })),
    };
  }
  return null;
}

async function gatherReconciliation(
  inside: OrgDb,
  { period, nowMicros }: At,
): Promise<ReconciliationFigures> {
  const { billedPico, matchedByGrade } = await sumMonth(inside, period.fromDay, shiftDay(period.toDay, 1));
  const { summary } = await readFinancialSummary(inside, windowOfPeriod(period), nowMicros);
  const claims = await listClaimsOver(inside, period, CLAIMS_MAX);
  return {
    billedPico,
    matchedByGrade,
    summary,
    claims: claims.map((claim) => ({
      ...claim,
      recoverableCents: BigInt(claim.recoverableCents),
      creditIssuedCents: claim.creditIssuedCents === null ? null : BigInt(claim.creditIssuedCents),
    })),
  };
}
