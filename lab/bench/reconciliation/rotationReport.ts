/** The tables of all generators side by side, with their means. */
import { isReached, type Metrics, ROTATION_TARGETS } from './metrics.js';
import { formatPercent, formatShare, formatTable } from './report.js';
import type { GeneratorMetrics } from './rotation.js';

const HEAD = [
  'generator',
  '$ precision HIGH',
  '$ recall HIGH',
  'any grade',
  'type $',
  'ECE',
  'misattributed',
  'V1 precision',
  'V1 recall',
  'V0 above LOW',
  'benign HIGH',
];

const NOTHING = { precision: Number.NaN, recall: Number.NaN, high: 0, medium: 0 };

function rowOf(one: GeneratorMetrics, isLeftOut: boolean): (number | undefined)[] {
  const shipped = one.shipped.get('V3');
  const wide = isLeftOut ? one.leftOut.V3 : shipped;
  const benign = isLeftOut ? one.leftOut.benign : one.shipped.get('benign');
  const v1 = one.shipped.get('V1') ?? NOTHING;
  const v0 = one.shipped.get('V0') ?? NOTHING;
  return [
    wide?.precisionHigh,
    wide?.recallHigh,
    wide?.recall,
    wide?.typeByDollars,
    wide?.calibrationError,
    wide?.misattributed,
    v1.precision,
    v1.recall,
    v0.high + v0.medium,
    benign?.high,
  ];
}

const WRITERS: readonly ((value: number) => string)[] = [
  ...Array.from({ length: 5 }, () => formatShare),
  (value) => formatPercent(value, 3),
  formatShare,
  formatShare,
  String,
  String,
];

const written = (values: readonly (number | undefined)[]) =>
  values.map((value, at) => (WRITERS[at] ?? formatShare)(value ?? Number.NaN));

/** The mean over generators of each value that is a number; counts are added. */
function meanOf(rows: readonly (readonly (number | undefined)[])[]): number[] {
  return HEAD.slice(1).map((_, at) => {
    const values = rows.map((row) => row[at]).filter((value) => value !== undefined && !Number.isNaN(value));
    const sum = values.reduce<number>((total, value) => total + (value ?? 0), 0);
    return at < COUNTS_FROM ? sum / values.length : sum;
  });
}

const COUNTS_FROM = 8;

/** Both tables, and each target with the mean. `missed`: how many targets the left-out means miss. */
export function rotationTables(all: readonly GeneratorMetrics[]): { text: string; missed: number } {
  const tables = [false, true].map((isLeftOut) => {
    const rows = all.map((one) => rowOf(one, isLeftOut));
    const named = rows.map((row, at) => [all[at]?.generator ?? '', ...written(row)]);
    return formatTable(HEAD, [...named, ['mean', ...written(meanOf(rows))]]);
  });
  const verdicts = ROTATION_TARGETS.map((target) => {
    const values = all.map((one) => metricOf(one, target.of)).filter((one) => one !== undefined);
    const mean = values.reduce((sum, one) => sum + target.value(one), 0) / values.length;
    const isMet = values.length > 0 && isReached({ ...target, value: () => mean }, values[0] as Metrics);
    const asked = target.least === undefined ? `at most ${target.most}` : `at least ${target.least}`;
    return {
      isMet,
      text: `${isMet ? 'reached' : 'MISSED '} ${target.of} ${target.words}: ${mean.toFixed(4)}, ${asked}`,
    };
  });
  const text = [
    'As the engine is:',
    tables[0],
    '\nV3 with the calibration fitted on the other generators:',
    tables[1],
    '\nMeans of the left-out generators:',
    ...verdicts.map((one) => one.text),
  ].join('\n');
  return { text, missed: verdicts.filter(({ isMet }) => !isMet).length };
}

function metricOf(one: GeneratorMetrics, of: (typeof ROTATION_TARGETS)[number]['of']): Metrics | undefined {
  if (of === 'V3' || of === 'benign') return one.leftOut[of];
  return one.shipped.get(of);
}
