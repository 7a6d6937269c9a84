/** The documents of each visibility, from one set of books. */
import type { BillDocument, GeneratedVisibility } from '../../world.js';
import { type Books, type Charge, type Counted, groupBy } from '../books.js';
import { anthropicCostPages, anthropicUsagePages } from './anthropic.js';
import { costExplorerAnswer, costManagementAnswer, plainFile } from './clouds.js';
import { openaiCostPages, openaiUsagePages } from './openai.js';

/** `readAt`: Unix seconds of reading the bills, which decides what Cost Explorer marks as estimated. */
export function writePapers(books: Books, readAt: number): Record<GeneratedVisibility, BillDocument[]> {
  const papers: Record<GeneratedVisibility, BillDocument[]> = { V3: [], V2: [], V1: [], V0: [] };
  const counted = books.counted();
  for (const charges of groupBy(books.charges(), ({ provider, accountId }) => `${provider} ${accountId}`)) {
    const [{ provider, accountId }] = charges as [Charge, ...Charge[]];
    const usage = counted.filter((one) => one.provider === provider && one.accountId === accountId);
    for (const visibility of ['V3', 'V2', 'V1', 'V0'] as const) {
      const texts = textsOf(provider, charges, usage, visibility, readAt);
      papers[visibility].push(...texts.map(([feed, text]) => ({ provider, accountId, feed, text })));
    }
  }
  return papers;
}

type Text = [BillDocument['feed'], string];

function textsOf(
  provider: string,
  charges: readonly Charge[],
  usage: readonly Counted[],
  visibility: GeneratedVisibility,
  readAt: number,
): Text[] {
  const isFull = visibility === 'V3';
  const hasUsage = isFull || visibility === 'V2';
  if (visibility === 'V0') return [['plain_csv', plainFile(charges, 'totals')]];
  if (provider === 'openai')
    return [
      ['openai_costs', openaiCostPages(charges, isFull)],
      ...(hasUsage ? [['openai_usage', openaiUsagePages(usage, isFull)] as Text] : []),
    ];
  if (provider === 'anthropic')
    return [
      ['anthropic_costs', anthropicCostPages(charges)],
      ...(hasUsage ? [['anthropic_usage', anthropicUsagePages(usage, isFull)] as Text] : []),
    ];
  if (!isFull) return [['plain_csv', plainFile(charges, visibility === 'V2' ? 'merged' : 'amounts')]];
  return provider === 'aws_bedrock'
    ? [['aws_costs', costExplorerAnswer(charges, readAt)]]
    : [['azure_costs', costManagementAnswer(charges)]];
}
