import {
  type BillingFileOptions,
  type BillingFileSummary,
  readBillingFile,
} from '../../adapters/billing/file.js';
import type { BilledRow } from '../../domain/billing/billedRow.js';
import { parseFxRate } from '../../domain/billing/pageRow.js';

/** A bill's rows and its summary. */
export interface ReadBill {
  rows: BilledRow[];
  summary: BillingFileSummary;
}

/** Reads a bill as an import does; cut into pieces that fit no record. */
export async function readBill(
  content: Buffer | string,
  options: Partial<Omit<BillingFileOptions, 'fxRate'>> &
    Pick<BillingFileOptions, 'provider'> & { fxRate?: string },
): Promise<ReadBill> {
  const bytes = Buffer.from(content);
  const reader = readBillingFile(pieces(bytes), {
    format: undefined,
    skip: new Set(),
    ...options,
    fxRate: options.fxRate === undefined ? undefined : parseFxRate(options.fxRate),
  });
  const rows: BilledRow[] = [];
  for (;;) {
    const next = await reader.next();
    if (next.done) return { rows, summary: next.value };
    rows.push(...next.value.map(({ row }) => row));
  }
}

/** The beginning at once, because it determines the format; then a thousand bytes at a time. */
async function* pieces(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes.subarray(0, 65_536);
  for (let at = 65_536; at < bytes.length; at += 997) yield bytes.subarray(at, at + 997);
}
