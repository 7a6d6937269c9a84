import type { InvoiceRunCause, InvoiceStatus } from '../../domain/invoices/invoice.js';
import type { InvoiceEngine, PageTurn } from '../../domain/invoices/pageWords.js';
import { column } from '../entity.js';
import { lockByName } from '../locks.js';
import type { OrgDb } from '../orgDb.js';
import { defineRun, type Run } from '../runs/runTable.js';

export interface NewInvoiceRun {
  id: string;
  invoiceId: string;
  cause: InvoiceRunCause;
  /** In which order they try; null: as the settings say. */
  engines: InvoiceEngine[] | null;
  requestedBy: string;
  /** The status to which the invoice returns when a retry fails. */
  statusBefore: InvoiceStatus;
}

/** The result of a run. */
export interface InvoiceRunResult {
  status: 'reconciled' | 'needs_review';
  pages: number | null;
  engine: InvoiceEngine | null;
  lines: number;
}

export interface InvoiceRun extends Run, NewInvoiceRun {
  /** The key of the extraction in the blob store. */
  extractionKey: string | null;
  result: InvoiceRunResult | null;
}

export const INVOICE_RUNS = defineRun<InvoiceRun, NewInvoiceRun>('invoice_run', {
  invoiceId: column(),
  cause: column(),
  engines: column(),
  requestedBy: column(),
  statusBefore: column(),
  extractionKey: column(),
  result: column(),
});

/** The newest run of each of these invoices. */
export async function listNewestInvoiceRuns(
  orgDb: OrgDb,
  invoiceIds: readonly string[],
): Promise<InvoiceRun[]> {
  const rows = await orgDb.rows<InvoiceRun>(
    `select distinct on (invoice_id) ${INVOICE_RUNS.columns} from invoice_runs
     where org_id = $1 and invoice_id = any($2::uuid[]) order by invoice_id, created_at desc, id desc`,
    [orgDb.orgId, [...invoiceIds]],
  );
  return INVOICE_RUNS.read(rows);
}

/** Notes what an open run is doing, as a sign of life too. */
export async function recordRunStage(orgDb: OrgDb, id: string, stage: string): Promise<void> {
  await orgDb.run(
    `update invoice_runs set stage = $3, heartbeat_at = now() where org_id = $1 and id = $2 and status = 'running'`,
    [orgDb.orgId, id, stage],
  );
}

/** Extractions of an organization at once: one that uploads much leaves the places of the service to others. */
export const EXTRACTIONS_MAX = 2;
/** A place whose worker died is free after this time. */
export const PLACE_SECONDS = 60;

/**
 * Takes or keeps one of the organization's places for a running extraction; false where others have all of them. Call it
 * in a transaction of its own, which holds the lock.
 */
export async function takeExtractionPlace(inside: OrgDb, id: string): Promise<boolean> {
  await lockByName(inside, 'invoiceExtractions', inside.orgId);
  const changed = await inside.run(
    `update invoice_runs set extracting_until = now() + make_interval(secs => ${PLACE_SECONDS}), heartbeat_at = now()
     where org_id = $1 and id = $2 and status = 'running' and (
       select count(*) from invoice_runs other where other.org_id = $1 and other.id <> $2 and other.status = 'running'
         and other.extracting_until > now()) < ${EXTRACTIONS_MAX}`,
    [inside.orgId, id],
  );
  return changed === 1;
}

/** Gives a place back. */
export async function leaveExtractionPlace(orgDb: OrgDb, id: string): Promise<void> {
  await orgDb.run('update invoice_runs set extracting_until = null where org_id = $1 and id = $2', [
    orgDb.orgId,
    id,
  ]);
}

/** Degrees by which a page is turned, by its number. */
export type PageTurns = Record<string, PageTurn>;

/** Notes where an open run's extraction is stored. */
export async function recordExtraction(
  orgDb: OrgDb,
  id: string,
  { key, turns }: { key: string; turns: PageTurns },
): Promise<void> {
  await orgDb.run(
    `update invoice_runs set extraction_key = $3, page_turns = $4::jsonb, heartbeat_at = now() where org_id = $1 and id = $2 and status = 'running'`,
    [orgDb.orgId, id, key, JSON.stringify(turns)],
  );
}

/** The rotation of an invoice's pages, by its newest extraction. */
export async function findPageTurns(orgDb: OrgDb, invoiceId: string): Promise<PageTurns> {
  const [row] = await orgDb.rows<{ turns: PageTurns }>(
    `select page_turns as turns from invoice_runs where org_id = $1 and invoice_id = $2 and extraction_key is not null
     order by created_at desc, id desc limit 1`,
    [orgDb.orgId, invoiceId],
  );
  return row?.turns ?? {};
}
