/** Writes a ledger as the documents of each visibility. All of them have the same total. */
import type { BillDocument, GeneratedVisibility } from '../world.js';
import { anthropicCosts, anthropicUsage } from './anthropicPages.js';
import { grouped } from './grouped.js';
import type { CostRow, ExtraLine, Ledger, UsageRow } from './ledger.js';
import { openaiCosts, openaiUsage } from './openaiPages.js';
import { type CsvGrain, plainCsv } from './plainCsv.js';

export const VISIBILITIES: readonly GeneratedVisibility[] = ['V3', 'V2', 'V1', 'V0'];

const CSV_GRAINS: Record<GeneratedVisibility, CsvGrain> = {
  V3: 'full',
  V2: 'merged',
  V1: 'amounts',
  V0: 'totals',
};

/** Last days for which usage is requested by the hour, like a typical poller. */
const HOURLY_DAYS = 31;

export interface Span {
  firstDay: number;
  lastDay: number;
}

/**
 * V3: everything in the provider's API. V2: amounts by class and length, quantities by the day in a usage report
 * that merges lengths, keys and places. V1: amounts by class. V0: an amount for a model and day, in a plain file.
 */
export function writeBills(ledger: Ledger, span: Span): Record<GeneratedVisibility, BillDocument[]> {
  const costs = grouped(ledger.costRows(), accountOf);
  const usage = grouped(ledger.usageRows(), accountOf);
  const extras = grouped(ledger.extras, accountOf);
  const accounts = [...new Set([...costs.keys(), ...usage.keys(), ...extras.keys()])].sort();
  const bills: Record<GeneratedVisibility, BillDocument[]> = { V3: [], V2: [], V1: [], V0: [] };
  for (const name of accounts) {
    const [provider = '', accountId = ''] = name.split('|');
    for (const visibility of VISIBILITIES) {
      const documents = accountDocuments(
        { provider, accountId },
        costs.get(name) ?? [],
        usage.get(name) ?? [],
        extras.get(name) ?? [],
        visibility,
        span,
      );
      bills[visibility].push(...documents);
    }
  }
  return bills;
}

const accountOf = (row: { provider: string; accountId: string }): string =>
  `${row.provider}|${row.accountId}`;

function accountDocuments(
  account: { provider: string; accountId: string },
  costs: readonly CostRow[],
  usage: readonly UsageRow[],
  extras: readonly ExtraLine[],
  visibility: GeneratedVisibility,
  span: Span,
): BillDocument[] {
  const isFull = visibility === 'V3';
  const usageOptions = { isFull, hoursFromDay: isFull ? span.lastDay - HOURLY_DAYS : span.lastDay + 1 };
  const hasUsage = isFull || visibility === 'V2';
  if (visibility === 'V0' || (account.provider !== 'openai' && account.provider !== 'anthropic'))
    return [{ ...account, feed: 'plain_csv', text: plainCsv(costs, extras, CSV_GRAINS[visibility]) }];
  if (account.provider === 'openai') {
    const text = openaiCosts(account.accountId, costs, extras, { isFull, ...span });
    const documents: BillDocument[] = [{ ...account, feed: 'openai_costs', text }];
    if (hasUsage)
      documents.push({ ...account, feed: 'openai_usage', text: openaiUsage(usage, usageOptions) });
    return documents;
  }
  const documents: BillDocument[] = [
    { ...account, feed: 'anthropic_costs', text: anthropicCosts(costs, extras, span) },
  ];
  if (hasUsage)
    documents.push({ ...account, feed: 'anthropic_usage', text: anthropicUsage(usage, usageOptions) });
  return documents;
}
