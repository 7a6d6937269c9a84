import { z } from 'zod';
import { publicId } from '../../../domain/ids.js';
import { decimalFromPico, usdNumberFromPico } from '../../../domain/money.js';
import type { AccountLedger } from '../../../usecases/invoices/prepaid.js';
import { filterParameter } from '../../query.js';

export const prepaidQuery = z.object({ provider: filterParameter.optional() });

const sums = {
  bought_usd: z.number(),
  used_usd: z.number(),
  expired_usd: z.number(),
  left_usd: z.number(),
};

const ledgerSchema = z
  .strictObject({
    provider: z.string(),
    provider_account_id: z.string(),
    ...sums,
    uncovered_usd: z.number().meta({
      description: 'Usage since the first purchase that no credit was left for: paid in another way',
    }),
    expires_after_days: z.int().nullable().meta({ description: 'Null where the provider’s credit lasts' }),
    purchases: z.array(
      z.strictObject({
        invoice_id: z.string(),
        line: z.int(),
        day: z.string(),
        ...sums,
        expires_on: z.string().nullable(),
      }),
    ),
    unconverted: z
      .array(
        z.strictObject({
          invoice_id: z.string(),
          line: z.int(),
          day: z.string(),
          currency: z.string(),
          amount: z.string().meta({ description: 'Exact, in its currency' }),
        }),
      )
      .meta({ description: 'Purchases in a currency without a rate; part of no sum' }),
  })
  .meta({ id: 'PrepaidLedger' });

export const prepaidResponse = z.strictObject({
  as_of: z.string().meta({ description: 'UTC day' }),
  accounts: z.array(ledgerSchema),
});

export function presentLedger(ledger: AccountLedger): z.output<typeof ledgerSchema> {
  return {
    provider: ledger.provider,
    provider_account_id: ledger.accountId,
    bought_usd: usdNumberFromPico(ledger.bought),
    used_usd: usdNumberFromPico(ledger.used),
    expired_usd: usdNumberFromPico(ledger.expired),
    left_usd: usdNumberFromPico(ledger.left),
    uncovered_usd: usdNumberFromPico(ledger.uncovered),
    expires_after_days: ledger.creditDays,
    purchases: ledger.entries.map((entry) => ({
      invoice_id: publicId('inv', entry.invoiceId),
      line: entry.line,
      day: entry.day,
      bought_usd: usdNumberFromPico(entry.amount),
      used_usd: usdNumberFromPico(entry.used),
      expired_usd: usdNumberFromPico(entry.expired),
      left_usd: usdNumberFromPico(entry.left),
      expires_on: entry.expiresOn,
    })),
    unconverted: ledger.unconverted.map(({ invoiceId, line, day, currency, amount }) => ({
      ...{ invoice_id: publicId('inv', invoiceId), line, day, currency, amount: decimalFromPico(amount) },
    })),
  };
}
