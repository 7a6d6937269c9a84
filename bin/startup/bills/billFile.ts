import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { recordAudit } from '../../../db/access/auditLog.js';
import { type BillingSource, findBillingSource } from '../../../db/billing/billingSources.js';
import type { OrgDb } from '../../../db/orgDb.js';
import { DomainError } from '../../../domain/errors.js';
import { publicId } from '../../../domain/ids.js';
import { decimalFromPico } from '../../../domain/money.js';
import { RUN_TERMINAL_STATUSES } from '../../../domain/runs/runs.js';
import { StartError } from '../../../platform/startError.js';
import {
  BILLING_PAGE_BYTES,
  storeBillingUpload,
  type UploadedBill,
} from '../../../usecases/billing/billingUpload.js';

type Declarations = Pick<UploadedBill, 'provider' | 'declaredFormat' | 'declaredAccount' | 'declaredFxRate'>;

const POLL_MS = 250;
/** How long a queued import is watched before it is left to the service. */
const PICKUP_MS = 15_000;

/**
 * Stores a bill's file as an upload and waits while a worker reads it. Comes back queued when none does.
 * @throws StartError for a file that cannot be read, or whose account must be named.
 */
export async function importBillFile(
  orgDb: OrgDb,
  importId: string,
  path: string,
  declared: Declarations,
  pickupMs = PICKUP_MS,
): Promise<BillingSource> {
  const sizeBytes = await sizeOf(path);
  const receive = async (store: (chunk: Buffer) => Promise<void>) => {
    const hash = createHash('sha256');
    let read = 0;
    for await (const chunk of createReadStream(path, {
      highWaterMark: BILLING_PAGE_BYTES,
    }) as AsyncIterable<Buffer>) {
      hash.update(chunk);
      read += chunk.length;
      await store(chunk);
    }
    if (read !== sizeBytes) throw new StartError(`${path} changed while it was read: import it again.`);
    return { ...declared, filename: basename(path).slice(0, 255), sha256: hash.digest('hex'), sizeBytes };
  };
  const { source } = await storeBillingUpload(orgDb, importId, receive, undefined, recordImport).catch(
    (error: unknown) => {
      throw error instanceof DomainError && error.code === 'account_required'
        ? new StartError(`${error.message} (here: --account).`)
        : error;
    },
  );
  return watch(orgDb, source, pickupMs);
}

function recordImport(inside: OrgDb, { id, provider, filename, sha256 }: BillingSource): Promise<void> {
  return recordAudit(inside, {
    action: 'billing_import.created',
    actor: { kind: 'command', id: 'billing:import' },
    subject: { type: 'billing_import', id: publicId('imp', id) },
    details: { provider, filename, sha256 },
    requestId: null,
  });
}

async function sizeOf(path: string): Promise<number> {
  const found = await stat(path).catch(() => undefined);
  if (!found?.isFile()) throw new StartError(`${path} is no file that can be read.`);
  if (found.size === 0) throw new StartError(`${path} is empty.`);
  return found.size;
}

async function watch(orgDb: OrgDb, source: BillingSource, pickupMs: number): Promise<BillingSource> {
  const patience = performance.now() + pickupMs;
  let current = source;
  while (!RUN_TERMINAL_STATUSES.has(current.status)) {
    if (current.status === 'queued' && performance.now() > patience) return current;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    current = (await findBillingSource(orgDb, source.id)) ?? current;
  }
  return current;
}

/** What became of an import, in a few lines. */
export function readSummary(source: BillingSource): string {
  const id = publicId('imp', source.id);
  if (source.status === 'queued') return `${id}: stored; it is read as soon as the service runs (npm start).`;
  if (source.status !== 'succeeded')
    return `${id}: ${source.status}: ${source.errorMessage ?? 'no reason was given'}`;
  const lines = [
    `${id}: ${source.rowCount} rows, ${decimalFromPico(source.amountPico ?? 0n)} USD, ${source.periodStart} to ${source.periodEnd}, account ${source.accountId ?? 'several'}, read as ${source.format}.`,
  ];
  if (source.restatedBuckets > 0)
    lines.push(`${source.restatedBuckets} buckets stand in the file more than once: the later copy counts.`);
  for (const { label, rows, amount_usd } of source.unparsed)
    lines.push(`not understood, kept as other: "${label}", ${rows} rows, ${amount_usd} USD`);
  return lines.join('\n');
}
