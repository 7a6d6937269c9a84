/** What findings over an account are made of: findings of its series, cut by days, and days of their residuals. */
import { absPico, type Pico } from '../../money.js';
import type { Finding, FindingDay, FindingLine } from '../inference/finding.js';
import type { Visibility } from '../matching/cells.js';
import { apportion } from '../matching/classLines.js';
import { footed } from './accountLines.js';

export const sumPico = (values: readonly Pico[]): Pico => values.reduce((total, value) => total + value, 0n);

/** The finding with these of its days alone; undefined where none is left. Sums follow, lines in proportion. */
export function keepDays(finding: Finding, keeps: (day: string) => boolean): Finding | undefined {
  const days = finding.days.filter((one) => keeps(one.day));
  if (days.length === finding.days.length) return finding;
  if (days.length === 0) return undefined;
  const impactPico = sumPico(days.map((one) => one.impactPico));
  const isOver = impactPico >= 0n;
  return {
    ...finding,
    days,
    impactPico,
    direction: isOver ? 'overcharge' : 'undercharge',
    claimable: finding.claimable && isOver,
    recoverablePico: finding.recoverablePico > 0n && isOver ? impactPico : 0n,
    lines: shareOfLines(finding, days),
  };
}

/** Lines are told for all days together: a part of the days has its share of them by what was billed. */
function shareOfLines({ lines, days: all }: Finding, days: readonly FindingDay[]): FindingLine[] {
  const part = sumPico(days.map((one) => absPico(one.billedPico)));
  const rest = sumPico(all.map((one) => absPico(one.billedPico))) - part;
  const take = (whole: bigint) => apportion(whole, [part, rest])[0] ?? 0n;
  const shares = lines.map((line) => ({
    ...line,
    billedQuantity: line.billedQuantity === null ? null : take(line.billedQuantity),
    observedQuantity: take(line.observedQuantity),
    billedPico: take(line.billedPico),
    expectedPico: take(line.expectedPico),
  }));
  return footed(shares, sumPico(days.map((one) => one.impactPico)));
}

/** Names the place of a model's day, to look it up by. */
export const placeOf = (model: string, day: string): string => JSON.stringify([model, day]);

/** What several days together let one see: what the least of them does. Names of visibilities are in their order. */
export function leastOf(visibilities: readonly Visibility[]): Visibility {
  return visibilities.reduce((least, one) => (one < least ? one : least), 'V3');
}

export const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** One order for an account's findings, whatever order its series came in. */
export function inOrder(findings: readonly Finding[]): Finding[] {
  return [...findings].sort(
    (a, b) =>
      byText(a.model, b.model) ||
      byText(a.days[0]?.day ?? '', b.days[0]?.day ?? '') ||
      byText(a.kind, b.kind) ||
      byText(a.variant, b.variant) ||
      byText(a.direction, b.direction),
  );
}
