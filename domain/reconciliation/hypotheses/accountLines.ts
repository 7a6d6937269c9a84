/** The lines of findings over an account: what of each class is too much, summing to the finding's impact. */
import type { TokenClass } from '../../events/event.js';
import { absPico, type Pico } from '../../money.js';
import type { FindingLine } from '../inference/finding.js';
import { apportion, billedRate } from '../matching/classLines.js';

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

/** The lines with what is left between them and the impact taken by the largest, so that they sum to it. */
export function footed(lines: readonly FindingLine[], impactPico: Pico): FindingLine[] {
  const rest = impactPico - lines.reduce((total, line) => total + impactOf(line), 0n);
  if (rest === 0n || lines.length === 0) return [...lines];
  const largest = lines.reduce((best, line) =>
    absPico(impactOf(line)) > absPico(impactOf(best)) ? line : best,
  );
  return lines.map((line) => (line === largest ? { ...line, expectedPico: line.expectedPico - rest } : line));
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
