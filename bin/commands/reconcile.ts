import { type Command, Option } from 'commander';
import { presentFigures } from '../../api/billing/coverage/wire.js';
import { type CsvCell, csvInteger, csvUsd, writeCsv } from '../../api/csv.js';
import { currentWeights } from '../../db/reconciliation/weightSets.js';
import { QUANTITY_ONE } from '../../domain/billing/billedRow.js';
import { claimCents } from '../../domain/claims/financialSummary.js';
import {
  centsFromPico,
  decimalFromPico,
  PICO_PER_USD,
  type Pico,
  usdNumberFromPico,
  usdNumberOrNull,
} from '../../domain/money.js';
import {
  asksForAction,
  byWeight,
  type FindingSums,
  sumsOfFindings,
} from '../../domain/reconciliation/carryFindings.js';
import {
  type CoverageFigures,
  coverageOfBuckets,
  dollarShare,
  type ModelCoverage,
  tokenShare,
} from '../../domain/reconciliation/coverage.js';
import { type Finding, type FindingDay, reasonOf } from '../../domain/reconciliation/engine/index.js';

import { apportion } from '../../domain/reconciliation/matching/classLines.js';
import { type ReconcileReport, reconcileBills } from '../../usecases/reconciliation/reconcileBills.js';
import { billReportCommand, type MakeReport } from '../bills/billReport.js';
import type { Terminal } from '../terminal/terminal.js';
import {
  dollars,
  figure,
  fitText,
  foundDollars,
  left,
  right,
  textTable,
  wrapText,
} from '../terminal/textTable.js';
import { count, withoutBills } from './audit.js';

/** Differences between a provider's bills and the calls of the same days; stores nothing. */
export const makeReconciliation: MakeReport = async (orgDb, range, agreed) => {
  const prices = { agreed, list: agreed.list };
  const report = await reconcileBills(orgDb, range, prices, await currentWeights(orgDb));
  report.findings.sort(byWeight);
  return {
    table: () => reconcileTable(report),
    json: () => presentReconciliation(report, agreed.versionAt(range.nowMicros)),
    csv: () => writeReconciliationCsv(report),
    asksForAction: report.findings.some(asksForAction),
  };
};

export function command(terminal: Terminal): Command {
  const failOption = new Option('--fail-on-finding', 'exit code 1 where a finding needs an action');
  return billReportCommand('reconcile', failOption, makeReconciliation, terminal);
}

/** Most findings and models on a terminal; --format csv has all findings, --format json all of both. */
const FINDINGS_MAX = 40;
const MODELS_MAX = 20;
const KIND_CHARS = 30;
const MODEL_CHARS = 20;
const LABEL_CHARS = 40;
const LINE_CHARS = 112;
const INDENT = '    ';
const TOKENS_PER_MTOK = 1_000_000n;
const ACCOUNT_CHARS = 24;
const PICO_PER_CENT = PICO_PER_USD / 100n;

/** The reconciliation for a terminal: at most 120 columns, plain text. */
export function reconcileTable(report: ReconcileReport): string {
  if (report.billed === null) return `${withoutBills(report.provider)}\n`;
  const title = `Bills of ${report.provider} and the calls of ${report.fromDay} to ${report.toDay}: ${count(report.days, 'day')} with a bill.`;
  if (report.days === 0)
    return `${title}\n\nThere is none in these days; the bills go from ${report.billed.firstDay} to ${report.billed.lastDay}.\n`;
  const { models, totals } = coverageOfBuckets(report.buckets);
  const parts = [
    [title],
    findingsOf(report.findings),
    sumsOf(totals, sumsOfFindings(report.findings)),
    modelsOf(models),
  ];
  return `${parts
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')}\n`;
}

function modelsOf(models: readonly ModelCoverage[]): string[] {
  if (models.length === 0) return [];
  const hasAccounts = new Set(models.map(({ accountId }) => accountId)).size > 1;
  return [
    'How much of what was billed was observed',
    ...textTable(
      [
        ...(hasAccounts ? [left('account')] : []),
        ...[left('model'), right('days'), right('calls'), right('Mtok billed'), right('observed')],
        ...[right('billed'), right('explained')],
      ],
      models
        .slice(0, MODELS_MAX)
        .map(({ accountId, model, days, figures }) => [
          ...(hasAccounts ? [fitText(accountId || 'unknown', ACCOUNT_CHARS)] : []),
          ...[
            fitText(model, hasAccounts ? LABEL_CHARS - ACCOUNT_CHARS / 2 : LABEL_CHARS),
            figure(BigInt(days) * QUANTITY_ONE, 0),
            figure(BigInt(figures.calls) * QUANTITY_ONE, 0),
          ],
          ...[figure(figures.billedTokens / TOKENS_PER_MTOK, 3), percent(tokenShare(figures))],
          ...[dollars(figures.billedPico), percent(dollarShare(figures))],
        ]),
    ),
    ...more(models.length - MODELS_MAX, 'model', 'json'),
  ];
}

const percent = (share: number | null): string => (share === null ? '?' : `${(share * 100).toFixed(1)} %`);

function more(rest: number, noun: string, format: string): string[] {
  return rest > 0 ? [`and ${count(rest, `more ${noun}`)}: --format ${format} has them all`] : [];
}

const ODDS_MAX = 999_999;

/** The odds against the next best explanation, with a readable number of digits. */
function odds({ next }: Finding): string {
  if (!next) return '';
  if (next.odds > ODDS_MAX) return `>${figure(BigInt(ODDS_MAX) * QUANTITY_ONE, 0)}:1`;
  return `${next.odds < 10 ? next.odds.toFixed(1) : figure(BigInt(Math.round(next.odds)) * QUANTITY_ONE, 0)}:1`;
}

function findingsOf(findings: readonly Finding[]): string[] {
  if (findings.length === 0) return ['Nothing was found: bills and calls agree as far as both can tell.'];
  const shown = findings.slice(0, FINDINGS_MAX);
  const [headings = '', rule = '', ...rows] = textTable(
    [
      ...[left('finding'), left('way'), left('model'), left('from'), left('to'), right('days')],
      ...[right('dollars'), left('grade'), right('odds')],
    ],
    shown.map((finding) => [
      ...[fitText(finding.kind, KIND_CHARS), finding.direction === 'overcharge' ? 'over' : 'under'],
      ...[fitText(finding.model, MODEL_CHARS), finding.days[0]?.day ?? '', finding.days.at(-1)?.day ?? ''],
      ...[String(finding.days.length), foundDollars(finding.impactPico), finding.grade, odds(finding)],
    ]),
    ' ',
  );
  const hasAccounts = new Set(findings.map((finding) => finding.accountId)).size > 1;
  return [
    'What was found: dollars billed − right, and how many times likelier it is than the next best explanation',
    headings,
    rule,
    ...rows.flatMap((row, at) => [row, ...remarks(shown[at], hasAccounts)]),
    ...more(findings.length - shown.length, 'finding', 'csv'),
  ];
}

/** The party at fault, with the certainty of the grade. */
function whoseOf({ blame, grade }: Finding): string {
  if (blame === 'own') return 'This is your own to change.';
  if (blame === 'none') return '';
  return `This ${grade === 'HIGH' ? 'is' : grade === 'MEDIUM' ? 'is probably' : 'may be'} the provider’s mistake.`;
}

/** Names of alternative explanations whose kind has none. */
const ELSE: Partial<Record<NonNullable<Finding['next']>['kind'], string>> = {
  none: 'nothing is wrong with the bill',
  unexplained: 'something that is not known',
};

/** Details that the figures omit: party at fault, cause, alternative, and remedy. */
function remarks(finding: Finding | undefined, hasAccounts: boolean): string[] {
  if (!finding) return [];
  const { next } = finding;
  const sentences = [
    whoseOf(finding),
    reasonOf(finding, finding.days),
    hasAccounts ? `Account ${finding.accountId || 'unknown'}.` : '',
    finding.provisional ? 'The bill of these days may still change.' : '',
    next ? `Next best explanation: ${ELSE[next.kind] ?? next.kind}.` : '',
  ];
  return [sentences.filter((words) => words !== '').join(' '), ...finding.advice]
    .flatMap((sentence) => wrapText(sentence, LINE_CHARS))
    .map((line) => `${INDENT}${line}`);
}

/** Amounts rounded to cents that sum to the rounded whole: the largest remainders are rounded up. */
function footed(wholeCents: bigint, parts: readonly Pico[]): string[] {
  if (parts.some((part) => part < 0n)) return parts.map(dollars);
  return apportion(wholeCents, parts).map((cents) => dollars(cents * PICO_PER_CENT));
}

function sumsOf(totals: CoverageFigures, sums: FindingSums): string[] {
  const { recoverable, overchargedPico } = sums;
  const low = recoverable.LOW + recoverable.UNVERIFIED;
  const notAsked = overchargedPico - recoverable.HIGH - recoverable.MEDIUM - low;
  const billed = footed(centsFromPico(totals.billedPico), [
    ...[totals.explainedPico, totals.notMatchedPico, totals.notObservablePico, totals.notYetObservedPico],
  ]);
  const over = footed(claimCents(overchargedPico), [recoverable.HIGH, recoverable.MEDIUM, low, notAsked]);
  return [
    'In US dollars',
    ...textTable(
      [left(''), right('')],
      [
        ['billed for usage', dollars(totals.billedPico)],
        ['  matched by calls', billed[0] ?? ''],
        ['  not matched by calls', billed[1] ?? ''],
        ['  no call can show it', billed[2] ?? ''],
        ['  before the first call', billed[3] ?? ''],
        ['charged too much', foundDollars(overchargedPico)],
        ['  to be claimed: HIGH', over[0] ?? ''],
        ['  to be claimed: MEDIUM', over[1] ?? ''],
        ['  to be claimed: LOW and below', over[2] ?? ''],
        ['  not to be claimed', over[3] ?? ''],
        ['charged too little', foundDollars(sums.underchargedPico)],
        ['your own to change', foundDollars(sums.ownPico)],
        ['unexplained, charged too much', foundDollars(sums.unexplainedPico)],
        ['  on days that may still be restated', foundDollars(sums.unexplainedProvisionalPico)],
        ['unexplained, charged too little', foundDollars(sums.unexplainedUnderchargedPico)],
      ],
    ).slice(2),
    ...sharesOf(totals),
  ];
}

/** The bases of the shares, if there are any. */
function sharesOf(totals: CoverageFigures): string[] {
  const [tokens, amount] = [tokenShare(totals), dollarShare(totals)];
  return [
    ...(tokens === null ? [] : [`${percent(tokens)} of the billed tokens were observed.`]),
    ...(amount === null ? [] : [`${percent(amount)} of the dollars that calls can show are explained.`]),
  ];
}

type Part = 'billedPico' | 'expectedPico' | 'ratePico' | 'volumePico' | 'ownPricingPico';

/** The sum of one part of the dollars of a finding's days. */
const sumOf = (days: readonly FindingDay[], part: Part): Pico =>
  days.reduce((total, day) => total + day[part], 0n);

/** Odds for JSON and CSV: null: they exceed the range of numbers. */
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

/** One row for each finding; the last row has the total billed amount, kind `total`, and its recoverable part. */
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
