import { compare } from '../compare.js';
import { shiftDay } from '../period.js';
import type { Scaled } from './invoiceReading.js';

/** A purchase of prepaid credit. */
export interface PrepaidPurchase {
  invoiceId: string;
  line: number;
  day: string;
  amount: Scaled;
}

export interface PrepaidUse {
  day: string;
  amount: Scaled;
}

/** The state of one purchase: `bought = used + expired + left`. */
export interface PrepaidEntry extends PrepaidPurchase {
  used: Scaled;
  expired: Scaled;
  left: Scaled;
  /** First day without value; null if the credit does not expire. */
  expiresOn: string | null;
}

export interface PrepaidLedger {
  entries: readonly PrepaidEntry[];
  bought: Scaled;
  used: Scaled;
  expired: Scaled;
  left: Scaled;
  /** Usage without remaining credit: paid in another way, or by a purchase before the first known invoice. */
  uncovered: Scaled;
}

/**
 * Days until bought credit expires: a year with OpenAI and Anthropic (their help pages on prepaid billing); the other
 * providers state no expiry.
 */
export const CREDIT_DAYS: Readonly<Record<string, number>> = { openai: 365, anthropic: 365 };

/**
 * Pays usage from purchases, the oldest first, day by day; a purchase pays from its own day on. Usage before the first
 * purchase is not part of the ledger.
 */
export function prepaidLedger(
  purchases: readonly PrepaidPurchase[],
  usage: readonly PrepaidUse[],
  terms: { creditDays: number | null; today: string },
): PrepaidLedger {
  const entries = [...purchases]
    .sort((a, b) => compare(a.day, b.day) || compare(a.invoiceId, b.invoiceId) || a.line - b.line)
    .map((purchase) => ({
      ...purchase,
      ...{ used: 0n, expired: 0n, left: purchase.amount },
      expiresOn: terms.creditDays === null ? null : shiftDay(purchase.day, terms.creditDays),
    }));
  const firstDay = entries[0]?.day;
  let uncovered = 0n;
  for (const { day, amount } of [...usage].sort((a, b) => compare(a.day, b.day))) {
    if (firstDay === undefined || day < firstDay) continue;
    let owed = amount;
    for (const entry of entries) {
      if (entry.day > day || (entry.expiresOn !== null && entry.expiresOn <= day)) continue;
      const paid = owed < entry.left ? owed : entry.left;
      if (paid <= 0n) continue;
      entry.left -= paid;
      entry.used += paid;
      owed -= paid;
    }
    if (owed > 0n) uncovered += owed;
  }
  for (const entry of entries)
    if (entry.expiresOn !== null && entry.expiresOn <= terms.today) {
      entry.expired = entry.left;
      entry.left = 0n;
    }
  const sum = (of: (entry: PrepaidEntry) => Scaled) =>
    entries.reduce((total, entry) => total + of(entry), 0n);
  return {
    ...{ entries, uncovered },
    bought: sum(({ amount }) => amount),
    used: sum(({ used }) => used),
    expired: sum(({ expired }) => expired),
    left: sum(({ left }) => left),
  };
}
