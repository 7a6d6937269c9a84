import type { BilledClass } from '../../billing/billedRow.js';
import type { Pico } from '../../money.js';
import { billedRate } from '../matching/charge.js';
import type { DayCharge } from '../matching/charges.js';
import type { RateHint } from './rateHints.js';

/** What a line of the audit is about: one model and class, as far as the bill tells its charges apart. */
export interface AuditPlace {
  accountId: string;
  label: string;
  tokenClass: BilledClass;
  serviceTier: string;
  isBatch: boolean | null;
  longContext: boolean | null;
  region: string | null;
}

/** Charges of one place over days, beside what they should be. */
export interface AuditLine extends AuditPlace {
  firstDay: string;
  lastDay: string;
  /** Days with such a charge. */
  days: number;
  /** In 1e-12 units. */
  quantity: bigint;
  billedPico: Pico;
  agreedPico: Pico;
  /** Null where the list is not sure of a rate. */
  listPico: Pico | null;
  /** Its quantity is a mixture, e.g. of batch and standard, that the bill puts on one line: its rates are averages. */
  isMixture: boolean;
  /** Known mistakes that give exactly this amount on every day of the line. */
  looksLike: readonly RateHint[];
  /** Who gives the agreed rate, how far the price sources agree on it, and whether one contradicts. */
  priceSource: string;
  agreement: string;
  disputed: boolean;
}

/** A charge whose agreed amount is known. */
export type JudgedCharge = DayCharge & { agreedPico: Pico };

/** A line to which the next day may still be added. */
export interface OpenLine {
  line: AuditLine;
  agreedRate: Pico | null;
  listRate: Pico | null;
  /** The ratios of billed to agreed that every day of the line allows within its rounding, scaled by RATIO_SCALE. */
  leastRatio: bigint;
  mostRatio: bigint;
}

const RATIO_SCALE = 10n ** 12n;
/** Ratios that differ by less than one part in this many are one: the provider's own rounding of a rate. */
const SAME_RATIO_PARTS = 10_000n;

export function differenceOf(line: Pick<AuditLine, 'billedPico' | 'agreedPico'>): Pico {
  return line.billedPico - line.agreedPico;
}

/** Tells places apart. */
export function placeKey(place: AuditPlace): string {
  const { accountId, label, tokenClass, serviceTier, isBatch, longContext, region } = place;
  return [accountId, label, tokenClass, serviceTier, isBatch, longContext, region].join('\n');
}

/** A line of one day. */
export function lineOf(day: string, charge: JudgedCharge): AuditLine {
  const { accountId, label, tokenClass, serviceTier, isBatch, longContext, region } = charge;
  const { billedPico, agreedPico, listPico, looksLike, priceSource, agreement, disputed } = charge;
  return {
    ...{ accountId, label, tokenClass, serviceTier, isBatch, longContext, region },
    ...{ firstDay: day, lastDay: day, days: 1, quantity: charge.quantity ?? 0n },
    ...{ billedPico, agreedPico, listPico, isMixture: charge.agreedRate === null },
    ...{ looksLike, priceSource, agreement, disputed },
  };
}

/** Adds a day's charge of the same place to a line. */
export function extendLine(line: AuditLine, day: string, charge: JudgedCharge): void {
  if (line.lastDay !== day) line.days += 1;
  line.lastDay = day;
  line.quantity += charge.quantity ?? 0n;
  line.billedPico += charge.billedPico;
  line.agreedPico += charge.agreedPico;
  line.listPico = line.listPico === null || charge.listPico === null ? null : line.listPico + charge.listPico;
  line.isMixture ||= charge.agreedRate === null;
  line.priceSource = charge.priceSource;
  line.agreement = charge.agreement;
  line.disputed ||= charge.disputed;
}

/** A line that begins with this charge. */
export function openLine(day: string, charge: JudgedCharge): OpenLine {
  const { agreedRate, listRate } = charge;
  const { least, most } = ratiosOf(charge);
  return { line: lineOf(day, charge), agreedRate, listRate, leastRatio: least, mostRatio: most };
}

/**
 * Adds a charge to an open line where it is the same error: the same rates would hold, and it is either the same ratio
 * of billed to agreed or exactly the same known mistake, whose ratio moves with the mixture inside the line. False,
 * and nothing changed, where it is another.
 */
export function continueLine(open: OpenLine, day: string, charge: JudgedCharge): boolean {
  if (open.agreedRate !== charge.agreedRate || open.listRate !== charge.listRate) return false;
  const { least, most } = ratiosOf(charge);
  const hints = open.line.looksLike.filter((hint) => charge.looksLike.includes(hint));
  const slack = open.mostRatio / SAME_RATIO_PARTS;
  const isSameRatio = least <= open.mostRatio + slack && most >= open.leastRatio - slack;
  if (!isSameRatio && hints.length === 0) return false;
  if (isSameRatio) {
    if (least > open.leastRatio && least <= open.mostRatio) open.leastRatio = least;
    if (most < open.mostRatio && most >= open.leastRatio) open.mostRatio = most;
  } else {
    open.leastRatio = least;
    open.mostRatio = most;
  }
  extendLine(open.line, day, charge);
  open.line.looksLike = hints;
  return true;
}

function ratiosOf(charge: JudgedCharge): { least: bigint; most: bigint } {
  const { billedPico, agreedPico, roundingPico } = charge;
  const divisor = agreedPico > 0n ? agreedPico : 1n;
  return {
    least: ((billedPico - roundingPico) * RATIO_SCALE) / divisor,
    most: ((billedPico + roundingPico) * RATIO_SCALE) / divisor + 1n,
  };
}

/** Dollars for a million tokens over a whole line; null without a quantity. */
export function perMtok(amountPico: Pico | null, quantity: bigint): Pico | null {
  return amountPico === null || quantity <= 0n ? null : billedRate(amountPico, quantity);
}
