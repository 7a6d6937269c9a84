import { numberColumn, textColumn } from '../claims/evidence/documentRates.js';
import { isTerminal } from '../claims/lifecycle.js';
import { centsFromPico, type Pico, usdNumberFromPico } from '../money.js';
import { shiftDay } from '../period.js';
import type { ReportFigures, SpendBy } from './figures.js';
import { daysOfPeriod, type ReportPeriod } from './report.js';
import {
  asOfText,
  beforeText,
  centsOfWhole,
  changeText,
  comparisonText,
  countText,
  type DocumentSection,
  moneyText,
  periodText,
  sumOf,
} from './sectionParts.js';
import { alertsIn } from './violationsSection.js';

/** The figures that a manager asks for first. */
export function summarySection(figures: ReportFigures): DocumentSection {
  const { period, spend, violations, reconciliation, asOfMicros } = figures;
  const total = centsFromPico(spend.models.totals.costPico);
  const previous = centsFromPico(spend.previousModels.totals.costPico);
  const alerts = alertsIn(violations.alerts);
  const { summary, claims, billedPico } = reconciliation;
  const recoverable = summary.recoverableConfirmedPico + summary.recoverableReviewPico;
  const isEmpty =
    spend.models.totals.calls === 0 &&
    alerts === 0 &&
    billedPico === 0n &&
    claims.length === 0 &&
    recoverable === 0n;
  const common = {
    key: 'summary' as const,
    title: 'Summary',
    isEmpty,
    sources: `The sections that follow name the sources of these figures; all are ${asOfText(asOfMicros)}.`,
  };
  if (isEmpty)
    return {
      ...common,
      sentences: [
        'Nothing was recorded in this period: no calls, no alerts, no bills and no claims. The report fills as soon as calls arrive or a bill is imported.',
      ],
      chart: null,
      tables: [],
    };
  return {
    ...common,
    sentences: [
      spend.models.totals.calls === 0
        ? 'No calls were recorded in this period.'
        : `Spend on calls was ${moneyText(total)}, ${comparisonText(total, previous, period, moneyText)}.`,
      recoverable === 0n
        ? 'Bills contain nothing that was found to be recoverable.'
        : `${moneyText(centsOfWhole(recoverable))} of what providers billed can be asked back.`,
      alerts === 0
        ? 'No alert was raised.'
        : `${countText(alerts)} ${alerts === 1 ? 'alert was' : 'alerts were'} raised, ${comparisonText(BigInt(alerts), BigInt(violations.previousAlerts), period, countText)}.`,
    ],
    chart: cumulativeChart(figures),
    tables: [keyFigures(figures)],
  };
}

function keyFigures({ spend, violations, enforcement, reconciliation }: ReportFigures) {
  const { summary, claims, billedPico } = reconciliation;
  const open = claims.filter(({ status }) => !isTerminal(status));
  const money = (name: string, current: bigint, previous?: bigint) => [
    name,
    moneyText(current),
    ...(previous === undefined ? ['', ''] : [moneyText(previous), changeText(current, previous)]),
  ];
  const count = (name: string, current: number, previous?: number) => [
    name,
    countText(current),
    ...(previous === undefined
      ? ['', '']
      : [countText(previous), changeText(BigInt(current), BigInt(previous))]),
  ];
  return {
    title: 'Key figures',
    note: 'Bills, findings and claims have no earlier figure: they are shown as they are known now.',
    table: {
      columns: [textColumn('Figure'), ...['This period', 'Period before', 'Change'].map(numberColumn)],
      rows: [
        money(
          'Spend on calls',
          centsFromPico(spend.models.totals.costPico),
          centsFromPico(spend.previousModels.totals.costPico),
        ),
        count('Calls', spend.models.totals.calls, spend.previousModels.totals.calls),
        count('Alerts', alertsIn(violations.alerts), violations.previousAlerts),
        money(
          'Prevented by enforcement',
          centsFromPico(enforcement.preventedPico),
          centsFromPico(enforcement.previousPreventedPico),
        ),
        money('Billed by providers', centsFromPico(billedPico)),
        money('Recoverable, confirmed', centsOfWhole(summary.recoverableConfirmedPico)),
        money('Recoverable, in review', centsOfWhole(summary.recoverableReviewPico)),
        money(
          'Unexplained on bills',
          centsOfWhole(summary.unexplainedCriticalPico + summary.unexplainedReviewPico),
        ),
        money('Open claims', sumOf(open.map(({ recoverableCents }) => recoverableCents))),
        money('Credited on claims', sumOf(claims.map(({ creditIssuedCents }) => creditIssuedCents ?? 0n))),
      ],
    },
  };
}

/** Points of a line that are drawn at most. */
const POINTS_MAX = 62;

function cumulativeChart({ period, previous, spend }: ReportFigures): DocumentSection['chart'] {
  const days = daysOfPeriod(period);
  if (days < 2 || spend.models.totals.costPico <= 0n) return null;
  const now = cumulated(spend.days, period);
  const before = cumulated(spend.previousDays, previous);
  const hasBefore = spend.previousModels.totals.costPico > 0n;
  const step = Math.ceil(days / POINTS_MAX);
  const places = Array.from({ length: days }, (_, at) => at).filter(
    (at) => (days - 1 - at) % step === 0 || at === 0,
  );
  return {
    title: hasBefore ? 'Spend added up, against the period before' : 'Spend added up',
    alt: `Lines: spend added up day by day, ${periodText(period)}${hasBefore ? `, beside the same ${beforeText(period)}` : ''}. It ends at ${moneyText(centsFromPico(spend.days.totals.costPico))}.`,
    drawing: {
      kind: 'lines',
      unit: 'dollars',
      series: ['This period', ...(hasBefore ? ['Period before, dashed'] : [])],
      points: places.map((at) => ({
        label: `Day ${at + 1}`,
        values: [now[at], ...(hasBefore ? [before[at]] : [])],
      })),
    },
  };
}

function cumulated({ groups }: SpendBy, { fromDay, toDay }: ReportPeriod): number[] {
  const days = new Map(groups.map(({ key, costPico }) => [key, costPico]));
  const sums: number[] = [];
  let sum: Pico = 0n;
  for (let day = fromDay; day <= toDay; day = shiftDay(day, 1)) {
    sum += days.get(day) ?? 0n;
    sums.push(Math.max(usdNumberFromPico(sum), 0));
  }
  return sums;
}
