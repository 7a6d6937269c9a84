import { listBilledTotals } from '../../db/billing/billingRows.js';
import { listPurchaseLines, type PurchaseLine } from '../../db/invoices/comparedInvoices.js';
import type { OrgDb } from '../../db/orgDb.js';
import { CREDIT_DAYS, type PrepaidLedger, prepaidLedger } from '../../domain/invoices/prepaidLedger.js';
import { convert } from '../../domain/invoices/tieOut.js';
import { shiftDay } from '../../domain/period.js';

export interface AccountLedger extends PrepaidLedger {
  provider: string;
  accountId: string;
  /** Days after which credit is worth nothing; null where the provider states none. */
  creditDays: number | null;
  /** Purchases in a currency without an exchange rate: in no sum. */
  unconverted: readonly PurchaseLine[];
}

/**
 * Prepaid dollars that were bought, used, expired and are left, for each account with a purchase; by provider and
 * account. Usage comes from the bill. Work grows with the billed days since the first purchase.
 */
export async function readPrepaidLedgers(
  orgDb: OrgDb,
  provider: string | null,
  today: string,
): Promise<AccountLedger[]> {
  return orgDb.transaction(async (inside) => {
    const purchases = await listPurchaseLines(inside, provider);
    const [first] = purchases.map(({ day }) => day).sort();
    if (first === undefined) return [];
    const window = { provider, fromDay: first, toDay: shiftDay(today, 1) };
    const billed = (await listBilledTotals(inside, window)).filter(
      ({ chargeCategory }) => chargeCategory === 'usage',
    );
    return [...byAccount(purchases).values()].map((of) => {
      const { provider: name, accountId } = of[0] as PurchaseLine;
      const creditDays = CREDIT_DAYS[name] ?? null;
      const ledger = prepaidLedger(
        of.flatMap(({ invoiceId, line, day, amount, fxRate }) =>
          fxRate === null ? [] : [{ invoiceId, line, day, amount: convert(amount, fxRate) }],
        ),
        billed
          .filter((one) => one.provider === name && one.accountId === accountId)
          .map(({ day, amountPico }) => ({ day, amount: amountPico })),
        { creditDays, today },
      );
      const unconverted = of.filter(({ fxRate }) => fxRate === null);
      return { provider: name, accountId, creditDays, unconverted, ...ledger };
    });
  }, 'repeatable read');
}

function byAccount(purchases: readonly PurchaseLine[]): Map<string, PurchaseLine[]> {
  const accounts = new Map<string, PurchaseLine[]>();
  for (const one of purchases) {
    const key = JSON.stringify([one.provider, one.accountId]);
    accounts.set(key, [...(accounts.get(key) ?? []), one]);
  }
  return accounts;
}
