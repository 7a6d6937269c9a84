import { presentFigures } from '../../../api/billing/coverage/wire.js';
import { type CsvCell, csvInteger, csvUsd, writeCsv } from '../../../api/csv.js';
import { decimalFromPico, type Pico, usdNumberFromPico, usdNumberOrNull } from '../../../domain/money.js';
import { coverageOfBuckets } from '../../../domain/reconciliation/coverage/coverage.js';
import { sumsOfFindings } from '../../../domain/reconciliation/findings/findingSums.js';
import type { Finding, FindingDay } from '../../../domain/reconciliation/inference/finding.js';
import { reasonOf } from '../../../domain/reconciliation/inference/words.js';
import type { ReconcileReport } from '../../../usecases/reconciliation/reconcileBills.js';

type Part = 'billedPico' | 'expectedPico' | 'ratePico' | 'volumePico' | 'ownPricingPico';

/** A part of the money of a finding's days. */
const sumOf = (days: readonly FindingDay[], part: Part): Pico =>
  days.reduce((total, day) => total + day[part], 0n);

/** Odds as JSON and CSV hold them: null beyond what a number holds. */
const oddsOf = (odds: number): number | null => (Number.isFinite(odds) ? odds : null);

/** The reconciliation as JSON, its findings under the names of the API. */
export function presentReconciliation(report: ReconcileReport, pricesVersion: string) {
  const { models, totals } = coverageOfBuckets(report.buckets);
  const sums = sumsOfFindings(report.findings);
  return {
    provider: report.provider,
    status: report.billed === null ? 'no_billing_data' : 'reconciled',
    from: report.fromDay,
    to: report.toDay,
    billed: report.billed && { first_day: report.billed.firstDay, last_day: report.billed.lastDay },
    days: report.days,
    prices_version: pricesVersion,
    weight_set: report.weightSet,
    findings: report.findings.map(presentFinding),
    totals: {
      recoverable_high_usd: usdNumberFromPico(sums.recoverable.HIGH),
      recoverable_medium_usd: usdNumberFromPico(sums.recoverable.MEDIUM),
      recoverable_low_usd: usdNumberFromPico(sums.recoverable.LOW + sums.recoverable.UNVERIFIED),
      overcharged_usd: usdNumberFromPico(sums.overchargedPico),
      undercharged_usd: usdNumberFromPico(sums.underchargedPico),
      own_usd: usdNumberFromPico(sums.ownPico),
      unexplained_usd: usdNumberFromPico(sums.unexplainedPico),
      unexplained_provisional_usd: usdNumberFromPico(sums.unexplainedProvisionalPico),
      unexplained_undercharged_usd: usdNumberFromPico(sums.unexplainedUnderchargedPico),
    },
    coverage: {
      totals: presentFigures(report.days, totals),
      models: models.map(({ accountId, model, days, figures }) => ({
        provider_account_id: accountId,
        model,
        ...presentFigures(days, figures),
      })),
    },
  };
}

function presentFinding(finding: Finding) {
  const { days } = finding;
  return {
    kind: finding.kind,
    variant: finding.variant,
    direction: finding.direction,
    blame: finding.blame,
    claimable: finding.claimable,
    provider: finding.provider,
    provider_account_id: finding.accountId,
    model: finding.model,
    period_start: days[0]?.day ?? null,
    period_end: days.at(-1)?.day ?? null,
    provider_cost_usd: usdNumberFromPico(sumOf(days, 'billedPico')),
    our_cost_usd: usdNumberFromPico(sumOf(days, 'expectedPico')),
    impact_usd: usdNumberFromPico(finding.impactPico),
    impact_usd_exact: decimalFromPico(finding.impactPico),
    recoverable_usd: usdNumberFromPico(finding.recoverablePico),
    parts: {
      rate_usd_exact: decimalFromPico(sumOf(days, 'ratePico')),
      volume_usd_exact: decimalFromPico(sumOf(days, 'volumePico')),
      own_pricing_usd_exact: decimalFromPico(sumOf(days, 'ownPricingPico')),
    },
    confidence: finding.grade,
    confidence_score: finding.probability,
    match_score: finding.matchProbability,
    visibility: finding.visibility,
    provisional: finding.provisional,
    critical: finding.critical,
    missing_gates: [...finding.missing],
    next_best: finding.next && { kind: finding.next.kind, odds: oddsOf(finding.next.odds) },
    reason: reasonOf(finding, finding.days),
    advice: [...finding.advice],
    days: days.map((day) => ({
      day: day.day,
      provider_cost_usd_exact: decimalFromPico(day.billedPico),
      our_cost_usd_exact: decimalFromPico(day.expectedPico),
      impact_usd_exact: decimalFromPico(day.impactPico),
      confidence_score: day.probability,
    })),
    lines: finding.lines.map((line) => ({
      token_class: line.tokenClass,
      service_tier: line.serviceTier,
      is_batch: line.isBatch,
      long_context: line.longContext,
      region: line.region,
      billed_quantity: line.billedQuantity === null ? null : decimalFromPico(line.billedQuantity),
      observed_quantity: decimalFromPico(line.observedQuantity),
      billed_usd_per_mtok: usdNumberOrNull(line.billedRate),
      expected_usd_per_mtok: usdNumberOrNull(line.expectedRate),
      provider_cost_usd_exact: decimalFromPico(line.billedPico),
      our_cost_usd_exact: decimalFromPico(line.expectedPico),
    })),
    waterfall: finding.waterfall.map(({ signal, level, bits }) => ({ signal, level, bits })),
  };
}

const CSV_HEADER = [
  ...['provider', 'account', 'kind', 'variant', 'direction', 'blame', 'claimable', 'model', 'first_day'],
  ...['last_day', 'days', 'billed_usd', 'expected_usd', 'impact_usd', 'rate_usd', 'volume_usd'],
  ...['own_pricing_usd', 'recoverable_usd', 'confidence', 'confidence_score', 'visibility', 'provisional'],
  ...['critical', 'missing_gates', 'next_best', 'next_odds', 'reason', 'advice'],
];

const word = (value: boolean): string => (value ? 'yes' : 'no');
const number = (value: number | null): CsvCell => (value === null ? null : { number: String(value) });

/** One row for each finding; the last row is what was billed in all, kind `total`, and what of it can be asked back. */
export function writeReconciliationCsv(report: ReconcileReport): string {
  const { totals } = coverageOfBuckets(report.buckets);
  const recoverable = report.findings.reduce((sum, finding) => sum + finding.recoverablePico, 0n);
  const total: CsvCell[] = [
    ...[report.provider, null, 'total', null, null, null, null, null, report.fromDay, report.toDay],
    ...[
      csvInteger(report.days),
      csvUsd(totals.billedPico),
      null,
      null,
      null,
      null,
      null,
      csvUsd(recoverable),
    ],
    ...Array.from({ length: 10 }, () => null),
  ];
  return writeCsv(CSV_HEADER, [...report.findings.map(rowOf), total]);
}

function rowOf(finding: Finding): CsvCell[] {
  const { days, next } = finding;
  return [
    ...[finding.provider, finding.accountId, finding.kind, finding.variant, finding.direction, finding.blame],
    ...[word(finding.claimable), finding.model, days[0]?.day ?? null, days.at(-1)?.day ?? null],
    ...[csvInteger(days.length), csvUsd(sumOf(days, 'billedPico')), csvUsd(sumOf(days, 'expectedPico'))],
    ...[csvUsd(finding.impactPico), csvUsd(sumOf(days, 'ratePico')), csvUsd(sumOf(days, 'volumePico'))],
    ...[csvUsd(sumOf(days, 'ownPricingPico')), csvUsd(finding.recoverablePico), finding.grade],
    ...[number(finding.probability), finding.visibility, word(finding.provisional), word(finding.critical)],
    ...[finding.missing.join(' '), next?.kind ?? null, next ? number(oddsOf(next.odds)) : null],
    ...[reasonOf(finding, finding.days), finding.advice.join(' ')],
  ];
}
