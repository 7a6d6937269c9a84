/** Formats the metrics as text. */

import type { GeneratedVisibility } from '../../generators/world.js';
import { reliabilityBins } from './calibration.js';
import { isReached, type Metrics, metricsOf, SECOND_ALLOWANCE, TARGETS } from './metrics.js';
import type { Tally } from './tally.js';

export type Tallies = ReadonlyMap<GeneratedVisibility | 'benign', Tally>;

/** With three decimals; `-` for no number. */
export const formatShare = (value: number, digits = 3) => (Number.isNaN(value) ? '-' : value.toFixed(digits));
export const formatPercent = (value: number, digits = 2) =>
  Number.isNaN(value) ? '-' : `${(value * 100).toFixed(digits)} %`;
const dollars = (value: number) => Math.round(value).toLocaleString('en-US');
const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
export const formatTable = (head: readonly string[], rows: readonly (readonly string[])[]) =>
  [row(head), row(head.map(() => '---')), ...rows.map(row)].join('\n');

/** The main table: a line for each visibility, then the rules of thumb. */
export function mainTable(tallies: Tallies): string {
  const head = [
    'data',
    '$ precision HIGH',
    'all',
    '$ recall HIGH',
    'all',
    'type $',
    'type n',
    'ECE',
    'Brier',
    'misattributed',
    'unexplained',
    'under: precision',
    'recall',
    'run',
  ];
  const rows = [...tallies].map(([name, tally]) => [NAMES[name], ...figures(metricsOf(tally))]);
  const widest = tallies.get('V3');
  const rules = [...(widest?.rules ?? [])].map(([rule, sums]) => [
    `rule: gap > ${rule} %`,
    '-',
    formatShare(sums.right / sums.claimed),
    '-',
    formatShare(sums.found / (widest?.identifiable ?? Number.NaN)),
    ...Array.from({ length: 4 }, () => '-'),
    formatPercent((sums.claimed - sums.right) / (widest?.spend ?? Number.NaN)),
    ...Array.from({ length: 4 }, () => '-'),
  ]);
  return formatTable(head, [...rows, ...rules]);
}

/** A line for each adversarial set, at V3. */
export function setTable(tallies: ReadonlyMap<string, Tally>): string {
  const head = [
    'set',
    '$ precision HIGH',
    '$ recall HIGH',
    'all',
    'type $',
    'misattributed',
    'findings at HIGH',
  ];
  const rows = [...tallies].map(([set, tally]) => {
    const m = metricsOf(tally);
    const shares = [m.precisionHigh, m.recallHigh, m.recall, m.typeByDollars].map((value) =>
      formatShare(value),
    );
    return [set, ...shares, formatPercent(m.misattributed, 3), String(m.high)];
  });
  return formatTable(head, rows);
}

const NAMES: Record<GeneratedVisibility | 'benign', string> = {
  V3: 'V3, amounts and quantities in all dimensions',
  V2: 'V2, dimensions merged',
  V1: 'V1, amount per class',
  V0: 'V0, amount per model-day',
  benign: 'V3 without any mistake of a provider',
};

function figures(m: Metrics): string[] {
  return [
    formatShare(m.precisionHigh),
    formatShare(m.precision),
    formatShare(m.recallHigh),
    formatShare(m.recall),
    formatShare(m.typeByDollars),
    formatShare(m.typeByCount),
    formatShare(m.calibrationError),
    formatShare(m.brier),
    formatPercent(m.misattributed, 3),
    formatPercent(m.unexplained),
    formatShare(m.underPrecision),
    formatShare(m.underRecall),
    `${Math.round(m.runMs)} ms`,
  ];
}

/** Planted and found dollars of each cause at one visibility. */
export function causeTable(tally: Tally): string {
  const rows = [...tally.causes]
    .sort(([, a], [, b]) => b.planted - a.planted)
    .map(([name, cause]) => [
      name,
      dollars(cause.planted),
      dollars(cause.identifiable),
      dollars(cause.eligible),
      dollars(cause.foundHigh),
      dollars(cause.found),
      formatShare(cause.named / cause.found),
    ]);
  return formatTable(
    ['mistake', 'planted $', 'identifiable $', 'may be HIGH $', 'found HIGH $', 'found $', 'rightly named'],
    rows,
  );
}

/** Predicted and true shares of each kind's findings. */
export function calibrationTable({ predictions }: Tally): string {
  const kinds = [...new Set(predictions.map(({ finding }) => finding.kind))].sort();
  const lines = kinds.map((kind) =>
    lineOf(
      kind,
      predictions.filter((one) => one.finding.kind === kind),
    ),
  );
  const bins = reliabilityBins(predictions).map((bin, at) => [
    `bin ${at + 1}`,
    String(bin.count),
    formatShare(bin.said, 4),
    formatShare(bin.true, 4),
  ]);
  return formatTable(['finding', 'days', 'probability said', 'share true'], [...lines, ...bins]);
}

function lineOf(name: string, predictions: Tally['predictions']): string[] {
  const mean = (valueIn: (one: Tally['predictions'][number]) => number) =>
    predictions.reduce((sum, one) => sum + valueIn(one), 0) / predictions.length;
  return [
    name,
    String(predictions.length),
    formatShare(
      mean(({ probability }) => probability),
      4,
    ),
    formatShare(
      mean(({ outcome }) => outcome),
      4,
    ),
  ];
}

/** Falsely claimed dollars by their benign cause. */
export function falseTable(tally: Tally): string {
  const rows = [...tally.onCleanByCause]
    .sort(([, a], [, b]) => b - a)
    .map(([cause, sum]) => [cause === '' ? 'nothing planted' : cause, dollars(sum)]);
  return formatTable(['false dollars where there was', '$'], rows.length > 0 ? rows : [['-', '0']]);
}

/** Every target with its metric and whether it is reached. */
export function targetLines(tallies: Tallies, isSecond: boolean): { text: string; missed: number } {
  const lines: string[] = [];
  let missed = 0;
  for (const target of TARGETS) {
    const tally = tallies.get(target.of);
    if (!tally) continue;
    const metrics = metricsOf(tally);
    const value = target.value(metrics);
    const asked = target.least === undefined ? `at most ${target.most}` : `at least ${target.least}`;
    const isMet = isReached(target, metrics);
    const isNear = !isMet && isSecond && isReached(target, metrics, SECOND_ALLOWANCE);
    if (!isMet && !isNear) missed += 1;
    const verdict = isMet ? 'reached' : isNear ? `within ${SECOND_ALLOWANCE}` : 'MISSED';
    lines.push(`${verdict.padEnd(12)} ${target.of} ${target.words}: ${value.toFixed(4)}, ${asked}`);
  }
  return { text: lines.join('\n'), missed };
}

/** The size of a set, for orientation. */
export function sizeLine(tally: Tally): string {
  return `${tally.worlds} worlds, ${tally.seriesDays} series-days, $${dollars(tally.spend)} billed, $${dollars(tally.identifiable)} of overcharges ($${dollars(tally.eligible)} may reach HIGH) and $${dollars(tally.under.identifiable)} of undercharges identifiable at this visibility, $${dollars(tally.unknown)} of mistakes that no library knows (${formatPercent(metricsOf(tally).unknownClaimed)} of it claimed)`;
}
