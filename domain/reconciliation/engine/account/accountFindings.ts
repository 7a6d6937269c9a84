/** The lines of findings over an account: what of each class is too much, summing to the finding's impact. */
import type { TokenClass } from '../../../events/event.js';
import { absPico, type Pico } from '../../../money.js';
import type { Visibility } from '../../matching/cells.js';
import { apportion, billedRate } from '../../matching/classLines.js';
import type { Finding, FindingDay, FindingLine } from '../series/finding.js';

const keyOf = ({ tokenClass, serviceTier, isBatch, longContext, region }: FindingLine): string =>
  JSON.stringify([tokenClass, serviceTier, isBatch, longContext, region]);

/** Lines of several days, those of one meter added up; in one order. */
export function addedLines(lines: readonly FindingLine[]): FindingLine[] {
  const sums = new Map<string, FindingLine>();
  for (const line of lines) {
    const known = sums.get(keyOf(line));
    sums.set(keyOf(line), known ? plus(known, line) : line);
  }
  return [...sums]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, line]) => {
      const quantity = line.billedQuantity;
      return quantity !== null && quantity > 0n
        ? { ...line, billedRate: billedRate(line.billedPico, quantity) }
        : line;
    });
}

function plus(a: FindingLine, b: FindingLine): FindingLine {
  const isKnown = a.billedQuantity !== null && b.billedQuantity !== null;
  return {
    ...a,
    billedQuantity: isKnown ? (a.billedQuantity ?? 0n) + (b.billedQuantity ?? 0n) : null,
    observedQuantity: a.observedQuantity + b.observedQuantity,
    billedPico: a.billedPico + b.billedPico,
    expectedPico: a.expectedPico + b.expectedPico,
  };
}

const impactOf = (line: FindingLine): Pico => line.billedPico - line.expectedPico;

/**
 * The lines with what is left between them and the impact taken by the largest, so that they sum to it. A line is right at
 * nothing at least: what is beyond it goes to the next ones, as long as they have any.
 */
export function footed(lines: readonly FindingLine[], impactPico: Pico): FindingLine[] {
  let rest = impactPico - lines.reduce((total, line) => total + impactOf(line), 0n);
  if (rest === 0n || lines.length === 0) return [...lines];
  const bySize = [...lines].sort((a, b) => Number(absPico(impactOf(b)) - absPico(impactOf(a))));
  const taken = new Map<FindingLine, Pico>();
  for (const line of bySize) {
    const most = line.expectedPico > 0n ? line.expectedPico : 0n;
    const part = rest > most ? most : rest;
    taken.set(line, part);
    rest -= part;
  }
  const [largest] = bySize;
  return lines.map((line) => {
    const part = (taken.get(line) ?? 0n) + (line === largest ? rest : 0n);
    return part === 0n ? line : { ...line, expectedPico: line.expectedPico - part };
  });
}

/** The lines with this of each one's impact taken out: `rest` of what the whole is. */
export function shareOfImpact(lines: readonly FindingLine[], rest: Pico, whole: Pico): FindingLine[] {
  if (whole === 0n) return [...lines];
  const part = lines.map((line) => ({
    ...line,
    expectedPico: line.billedPico - (impactOf(line) * rest) / whole,
  }));
  return footed(part, rest);
}

/**
 * A day's lines, of which each class is charged this much too much; on the meters of a class by what they have more than was
 * seen. Classes without a line have no impact.
 */
export function linesWithImpact(
  lines: readonly FindingLine[],
  impacts: ReadonlyMap<TokenClass, Pico>,
  impactPico: Pico,
): FindingLine[] {
  const made = lines.map((line) => {
    const same = lines.filter((one) => one.tokenClass === line.tokenClass);
    const shares = apportion(impacts.get(line.tokenClass as TokenClass) ?? 0n, same.map(excessOf));
    return { ...line, expectedPico: line.billedPico - (shares[same.indexOf(line)] ?? 0n) };
  });
  return footed(made, impactPico);
}

/** In tokens or, of a bill without counts, in dollars: a bill has either. */
function excessOf({ billedQuantity, observedQuantity, billedPico, expectedPico }: FindingLine): bigint {
  const excess = billedQuantity === null ? billedPico - expectedPico : billedQuantity - observedQuantity;
  return excess > 0n ? excess : 0n;
}

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

/** Lines are for all days together: a part of the days has its share of them by the billed amount. */
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

/** The visibility of several days together: that of the least. Names of visibilities are in their order. */
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
