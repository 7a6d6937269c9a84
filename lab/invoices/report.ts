import { formatMebibytes, median, quantile } from '../bench/support/statistics.js';
import type { Score, Verdict } from './compareReading.js';
import { INVOICE_KINDS, type JudgedInvoice, type JudgedSet } from './judge.js';

/** Least share of amounts that have to be read as printed. */
export const TARGETS = { digital: 0.99, scan: 0.97, childPeakBytes: 400 * 1_048_576 };
/** Scans that are coarser have no target. */
const SCAN_DPI_MIN = 200;

type ScoreName = 'amounts' | 'descriptions' | 'periods' | 'kinds' | 'facts';

function scoreOf(invoices: readonly JudgedInvoice[], name: ScoreName): Score {
  const sum: Score = { right: 0, all: 0 };
  for (const { verdict } of invoices) {
    sum.right += verdict[name].right;
    sum.all += verdict[name].all;
  }
  return sum;
}

function share({ right, all }: Score): number {
  return all === 0 ? 1 : right / all;
}

/** Truncated, so that 100.00 % means all. */
function percent(value: number): string {
  return `${(Math.floor(value * 10_000) / 100).toFixed(2)} %`;
}

function count(invoices: readonly JudgedInvoice[], test: (verdict: Verdict) => boolean): number {
  return invoices.filter(({ verdict }) => test(verdict)).length;
}

/** A table in Markdown with a row for each generator and kind. */
export function judgedTable(sets: readonly JudgedSet[]): string {
  const head = [
    'generator',
    'kind',
    'documents',
    'amounts exact',
    'descriptions',
    'periods',
    'kinds',
    'facts',
    'wrong accepted',
    'right, to review',
    'contradictions found (named)',
    'median, p95',
    'peak of a child',
  ];
  const rows = sets.map(({ generator, kind, invoices, childPeakBytes }) => {
    const contradicted = invoices.filter(({ verdict }) => verdict.hasContradiction);
    const sound = invoices.filter(({ verdict }) => !verdict.hasContradiction);
    const times = invoices.map(({ ms }) => ms);
    const reviewed = count(sound, (verdict) => !verdict.isAccepted);
    return [
      generator,
      kind,
      String(invoices.length),
      ...(['amounts', 'descriptions', 'periods', 'kinds', 'facts'] as const).map((name) =>
        percent(share(scoreOf(invoices, name))),
      ),
      String(count(invoices, (verdict) => verdict.isWronglyAccepted)),
      `${reviewed} of ${sound.length}`,
      `${count(contradicted, (verdict) => !verdict.isAccepted)} of ${contradicted.length} (${count(contradicted, (verdict) => verdict.isContradictionNamed)})`,
      `${(median(times) / 1_000).toFixed(2)} s, ${(quantile(times, 0.95) / 1_000).toFixed(2)} s`,
      formatMebibytes(childPeakBytes),
    ];
  });
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** Amounts by supplier, for every set. */
export function supplierTable(sets: readonly JudgedSet[]): string {
  const suppliers = [...new Set(sets.flatMap(({ invoices }) => invoices.map(({ supplier }) => supplier)))];
  const head = ['amounts exact', ...sets.map(({ generator, kind }) => `${generator} ${kind}`)];
  const rows = suppliers.map((supplier) => [
    supplier,
    ...sets.map(({ invoices }) =>
      percent(
        share(
          scoreOf(
            invoices.filter((invoice) => invoice.supplier === supplier),
            'amounts',
          ),
        ),
      ),
    ),
  ]);
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** Missed targets, one sentence each. */
export function missedTargets(sets: readonly JudgedSet[]): string[] {
  return sets.flatMap(({ generator, kind, invoices, childPeakBytes }) => {
    const name = `${generator} ${kind}`;
    const dpi = INVOICE_KINDS[kind];
    const least = dpi === 0 ? TARGETS.digital : dpi >= SCAN_DPI_MIN ? TARGETS.scan : 0;
    const exact = share(scoreOf(invoices, 'amounts'));
    const wrong = invoices.filter(({ verdict }) => verdict.isWronglyAccepted).map((invoice) => invoice.name);
    return [
      ...(exact < least
        ? [`${name}: ${percent(exact)} of amounts are exact, ${percent(least)} are required`]
        : []),
      ...(wrong.length > 0 ? [`${name}: accepted although wrong: ${wrong.join(', ')}`] : []),
      ...(childPeakBytes > TARGETS.childPeakBytes
        ? [
            `${name}: a child took ${formatMebibytes(childPeakBytes)}, ${formatMebibytes(TARGETS.childPeakBytes)} are allowed`,
          ]
        : []),
    ];
  });
}

/** The faults of one document; empty without any. */
export function failureText({ name, supplier, features, failure, verdict }: JudgedInvoice): string {
  const { isAccepted, isWronglyAccepted, hasContradiction, faults } = verdict;
  if (faults.length === 0 && isAccepted !== hasContradiction) return '';
  const state = isWronglyAccepted
    ? 'WRONGLY ACCEPTED'
    : isAccepted
      ? 'accepted'
      : (failure ?? 'needs review');
  const head = `${name} (${supplier}: ${features.join(' ')}): ${state}${hasContradiction ? ', contradicts itself' : ''}`;
  if (failure !== null) return head;
  return [head, ...faults.map((fault) => `    ${fault}`)].join('\n');
}
