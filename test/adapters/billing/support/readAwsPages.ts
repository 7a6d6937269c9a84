import type { BillingConnector, FetchedPage } from '../../../../adapters/billing/connector.js';
import type { BilledRow } from '../../../../domain/billing/billedRow.js';
import { readBill } from '../../../support/readBill.js';

/** The rows of the pages of a chunk of Cost Explorer, as a sync reads them. */
export async function readAwsPages(
  connector: BillingConnector,
  pages: readonly FetchedPage[],
): Promise<BilledRow[]> {
  const rows: BilledRow[] = [];
  let cursor: string | null = null;
  for (const { body, nextCursor } of pages) {
    const asked = connector.askedFor?.(cursor);
    const bill = await readBill(body, {
      ...{ provider: 'aws_bedrock', format: 'aws_ce_pages', mayBeEmpty: true },
      ...(asked ? { asked } : {}),
    });
    rows.push(...bill.rows);
    cursor = nextCursor;
  }
  return rows;
}
