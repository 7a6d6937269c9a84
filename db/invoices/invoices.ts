import type {
  InvoiceFailure,
  InvoiceStatus,
  InvoiceTieReason,
  ReviewReason,
} from '../../domain/invoices/invoice.js';
import type { InvoiceCheck, InvoiceKind, Scaled } from '../../domain/invoices/invoiceReading.js';
import type { InvoiceEngine } from '../../domain/invoices/pageWords.js';
import type { InvoiceFields, Stored } from '../../domain/invoices/storedReading.js';
import type { Tie } from '../../domain/invoices/tieOut.js';
import { decimalFromPico } from '../../domain/money.js';
import type { Provider } from '../../domain/providers.js';
import type { Database } from '../client.js';
import { column, converted, defineEntity, listEntities, sqlNameOf } from '../entity.js';
import { lockByName } from '../locks.js';
import { type OrgDb, type SqlValue, unscoped } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';

/** A file as it was uploaded, before it is read. */
export interface NewInvoice {
  id: string;
  provider: Provider;
  sha256: string;
  blobKey: string;
  filename: string;
  sizeBytes: number;
  declaredAccount: string | null;
  /** US dollars for one unit of the invoice's currency, as a decimal text. */
  declaredFxRate: string | null;
  uploadedBy: string;
}

/** The facts read from the file. Amounts are in its currency. */
export interface InvoiceContents {
  pages: number | null;
  engine: InvoiceEngine | null;
  documentKind: InvoiceKind | null;
  layout: string | null;
  number: string | null;
  numberNormalised: string | null;
  issuer: string | null;
  /** As printed. */
  account: string | null;
  /** As bills name it; null while nothing names it. */
  providerAccountId: string | null;
  issueDate: string | null;
  dueDate: string | null;
  periodStart: string | null;
  /** Inclusive. */
  periodEnd: string | null;
  currency: string | null;
  subtotal: Scaled | null;
  discounts: Scaled | null;
  tax: Scaled | null;
  credits: Scaled | null;
  total: Scaled | null;
  amountPaid: Scaled | null;
  amountDue: Scaled | null;
  arithmeticOk: boolean | null;
  /** The lowest of its amounts, 0 to 1. */
  extractionConfidence: number | null;
}

export interface StoredInvoice extends Omit<NewInvoice, 'uploadedBy'>, InvoiceContents {
  status: InvoiceStatus;
  failureCode: InvoiceFailure | null;
  failureMessage: string | null;
  revision: number;
  fields: Stored<InvoiceFields> | null;
  checks: Stored<InvoiceCheck>[];
  duplicateOf: string | null;
  replaces: string | null;
  /** The one that stands in its place. */
  replacedBy: string | null;
  confirmedAtMicros: bigint | null;
  confirmedBy: string | null;
  confirmNote: string | null;
  tie: Tie | null;
  tieReason: InvoiceTieReason | null;
  tieCurrency: string | null;
  comparedAmount: Scaled | null;
  billedAmount: Scaled | null;
  reviewReasons: ReviewReason[];
  createdAtMicros: bigint;
  processedAtMicros: bigint | null;
}

const REPLACED_BY = `(select r.id from invoices r where r.org_id = invoices.org_id and r.replaces = invoices.id and r.status <> 'failed' order by r.created_at, r.id limit 1)`;

const INVOICES = defineEntity<StoredInvoice>('invoices', {
  id: column(),
  provider: column(),
  sha256: column(),
  blobKey: column(),
  filename: column(),
  sizeBytes: column(),
  declaredAccount: column(),
  declaredFxRate: column('declared_fx_rate::text'),
  status: column(),
  failureCode: column(),
  failureMessage: column(),
  revision: column(),
  pages: column(),
  engine: column(),
  documentKind: column(),
  layout: column(),
  number: column(),
  numberNormalised: column(),
  issuer: column(),
  account: column(),
  providerAccountId: column(),
  issueDate: column(),
  dueDate: column(),
  periodStart: column(),
  periodEnd: column(),
  currency: column(),
  subtotal: column(),
  discounts: column(),
  tax: column(),
  credits: column(),
  total: column(),
  amountPaid: column(),
  amountDue: column(),
  arithmeticOk: column(),
  extractionConfidence: column(),
  fields: column(),
  checks: column(),
  duplicateOf: column(),
  replaces: column(),
  replacedBy: converted((id: string | null) => id, REPLACED_BY),
  confirmedAtMicros: column(),
  confirmedBy: column(),
  confirmNote: column(),
  tie: column(),
  tieReason: column(),
  tieCurrency: column(),
  comparedAmount: column(),
  billedAmount: column(),
  reviewReasons: column(),
  createdAtMicros: column(),
  processedAtMicros: column(),
});

async function findOne(orgDb: OrgDb, where: string, values: readonly SqlValue[], rest = '') {
  const rows = await orgDb.rows<StoredInvoice>(
    `select ${INVOICES.columns} from invoices where org_id = $1 and ${where}${rest}`,
    [orgDb.orgId, ...values],
  );
  return INVOICES.read(rows)[0];
}

export function findInvoice(orgDb: OrgDb, id: string): Promise<StoredInvoice | undefined> {
  return findOne(orgDb, 'id = $2', [id]);
}

/** An invoice, locked until the transaction ends. */
export function lockInvoice(inside: OrgDb, id: string): Promise<StoredInvoice | undefined> {
  return findOne(inside, 'id = $2', [id], ' for no key update of invoices');
}

export function findInvoiceOfFile(
  orgDb: OrgDb,
  provider: Provider,
  sha256: string,
): Promise<StoredInvoice | undefined> {
  return findOne(orgDb, 'provider = $2 and sha256 = $3', [provider, sha256]);
}

/** Stores an uploaded file's row; undefined where the same file of the provider is there. */
export async function insertInvoice(inside: OrgDb, invoice: NewInvoice): Promise<StoredInvoice | undefined> {
  const entries = Object.entries(invoice) as [string, SqlValue][];
  const rows = await inside.rows<StoredInvoice>(
    `insert into invoices (org_id, ${entries.map(([name]) => sqlNameOf(name)).join(', ')})
     values ($1, ${entries.map((_, at) => `$${at + 2}`).join(', ')})
     on conflict (org_id, provider, sha256) do nothing returning ${INVOICES.columns}`,
    [inside.orgId, ...entries.map(([, value]) => value)],
  );
  return INVOICES.read(rows)[0];
}

export interface InvoiceFilter {
  status?: InvoiceStatus | undefined;
  provider?: Provider | undefined;
  /** Days, the last one inclusive: invoices whose service period overlaps them, else their issue date. */
  within?: { fromDay: string; toDay: string } | undefined;
}

/** Invoices, newest first. */
export function listInvoices(
  orgDb: OrgDb,
  { status, provider, within }: InvoiceFilter,
  page: { limit: number; offset: number },
): Promise<StoredInvoice[]> {
  return listEntities(orgDb, INVOICES, {
    where: { status, provider },
    and: (query) => {
      if (within)
        query.whereRaw(
          'coalesce(period_start, issue_date) <= ?::date and coalesce(period_end, period_start, issue_date) >= ?::date',
          [within.toDay, within.fromDay],
        );
    },
    order: [
      { column: 'created_at', type: 'timestamptz' },
      { column: 'id', type: 'uuid' },
    ],
    direction: 'desc',
    page,
  });
}

const FAILED_IS = 'failure_code = null, failure_message = null';

/** Notes that a run is at work on an invoice. */
export async function recordInvoiceAtWork(
  inside: OrgDb,
  id: string,
  status: 'received' | 'extracting' | 'matching',
): Promise<void> {
  await inside.run(`update invoices set status = $3, ${FAILED_IS} where org_id = $1 and id = $2`, [
    inside.orgId,
    id,
    status,
  ]);
}

/** Ends the work on an invoice. */
export async function recordInvoiceEnd(
  inside: OrgDb,
  id: string,
  end: {
    status: 'reconciled' | 'needs_review' | 'failed';
    failure?: { code: InvoiceFailure; message: string } | undefined;
  },
): Promise<void> {
  await inside.run(
    `update invoices set status = $3, failure_code = $4, failure_message = $5, processed_at = now() where org_id = $1 and id = $2`,
    [inside.orgId, id, end.status, end.failure?.code ?? null, end.failure?.message ?? null],
  );
}

const CONTENT_NAMES = [
  'pages',
  'engine',
  'documentKind',
  'layout',
  'number',
  'numberNormalised',
  'issuer',
  'account',
  'providerAccountId',
  'issueDate',
  'dueDate',
  'periodStart',
  'periodEnd',
  'currency',
  'subtotal',
  'discounts',
  'tax',
  'credits',
  'total',
  'amountPaid',
  'amountDue',
  'arithmeticOk',
  'extractionConfidence',
] as const satisfies readonly (keyof InvoiceContents)[];

const sqlValue = (value: InvoiceContents[keyof InvoiceContents]): SqlValue =>
  typeof value === 'bigint' ? decimalFromPico(value) : value;

/** Stores what was read, in place of what was read before; what people decided of that is forgotten. */
export async function recordContents(
  inside: OrgDb,
  id: string,
  {
    contents,
    fields,
    checks,
  }: { contents: InvoiceContents; fields: Stored<InvoiceFields>; checks: readonly Stored<InvoiceCheck>[] },
): Promise<void> {
  const assignments = CONTENT_NAMES.map((name, at) => `${sqlNameOf(name)} = $${at + 5}`);
  await inside.run(
    `update invoices set revision = revision + 1, fields = $3::jsonb, checks = $4::jsonb, confirmed_at = null, confirmed_by = null,
       confirm_note = null, tie = null, tie_reason = null, tie_currency = null, compared_amount = null, billed_amount = null,
       review_reasons = '{}', ${assignments.join(', ')}
     where org_id = $1 and id = $2`,
    [
      inside.orgId,
      id,
      JSON.stringify(fields),
      JSON.stringify(checks),
      ...CONTENT_NAMES.map((name) => sqlValue(contents[name])),
    ],
  );
}

/** Stores the arithmetic of a corrected reading: what was compared before is of the past. */
export async function recordChecks(
  inside: OrgDb,
  id: string,
  checks: readonly Stored<InvoiceCheck>[],
  arithmeticOk: boolean,
): Promise<void> {
  await inside.run(
    `update invoices set revision = revision + 1, checks = $3::jsonb, arithmetic_ok = $4 where org_id = $1 and id = $2`,
    [inside.orgId, id, JSON.stringify(checks), arithmeticOk],
  );
}

/** Notes that a person holds the document for wrong, and its reading for right. */
export async function recordConfirmation(
  inside: OrgDb,
  id: string,
  { by, note }: { by: string; note: string | null },
): Promise<void> {
  await inside.run(
    `update invoices set revision = revision + 1, confirmed_at = now(), confirmed_by = $3, confirm_note = $4 where org_id = $1 and id = $2`,
    [inside.orgId, id, by, note],
  );
}

export interface InvoiceTie {
  tie: Tie;
  reason: InvoiceTieReason | null;
  /** Of the two amounts; null where nothing is compared. */
  currency: string | null;
  compared: Scaled | null;
  billed: Scaled | null;
}

const decimalOrNull = (value: Scaled | null) => (value === null ? null : decimalFromPico(value));

export async function recordTie(
  inside: OrgDb,
  id: string,
  { tie, reviewReasons }: { tie: InvoiceTie | null; reviewReasons: readonly ReviewReason[] },
): Promise<void> {
  await inside.run(
    `update invoices set tie = $3, tie_reason = $4, tie_currency = $5, compared_amount = $6, billed_amount = $7, review_reasons = $8::text[]
     where org_id = $1 and id = $2`,
    [
      inside.orgId,
      id,
      tie?.tie ?? null,
      tie?.reason ?? null,
      tie?.currency ?? null,
      decimalOrNull(tie?.compared ?? null),
      decimalOrNull(tie?.billed ?? null),
      textArray([...reviewReasons]),
    ],
  );
}

/** Until the transaction ends no other transaction decides which of a provider's invoices with one number counts. */
export async function lockInvoiceNumber(inside: OrgDb, provider: Provider): Promise<void> {
  await lockByName(inside, 'invoiceNumber', `${inside.orgId} ${provider}`);
}

export interface SameNumber {
  id: string;
  documentKind: InvoiceKind;
  duplicateOf: string | null;
  replaces: string | null;
  createdAtMicros: bigint;
}

/** Invoices of the provider, account and number besides this one, the first uploaded first. Failed ones and receipts are none. */
export async function listSameNumber(
  inside: OrgDb,
  id: string,
  key: { provider: Provider; providerAccountId: string | null; numberNormalised: string },
): Promise<SameNumber[]> {
  return inside.rows(
    `select id, document_kind as "documentKind", duplicate_of as "duplicateOf", replaces, created_at as "createdAtMicros" from invoices
     where org_id = $1 and id <> $2 and provider = $3 and number_normalised = $4 and provider_account_id is not distinct from $5
       and document_kind <> 'receipt' and status <> 'failed'
     order by created_at, id`,
    [inside.orgId, id, key.provider, key.numberNormalised, key.providerAccountId],
  );
}

/** False where it is so already. */
export async function recordSameNumber(
  inside: OrgDb,
  id: string,
  { duplicateOf, replaces }: { duplicateOf: string | null; replaces: string | null },
): Promise<boolean> {
  const changed = await inside.run(
    'update invoices set duplicate_of = $3, replaces = $4 where org_id = $1 and id = $2 and (duplicate_of, replaces) is distinct from ($3::uuid, $4::uuid)',
    [inside.orgId, id, duplicateOf, replaces],
  );
  return changed === 1;
}

/** Invoices that refer to this one as their first or as what they replace, the first uploaded first. */
export async function listReferring(inside: OrgDb, id: string): Promise<StoredInvoice[]> {
  const rows = await inside.rows<StoredInvoice>(
    `select ${INVOICES.columns} from invoices where org_id = $1 and (duplicate_of = $2 or replaces = $2) order by created_at, id`,
    [inside.orgId, id],
  );
  return INVOICES.read(rows);
}

/** Whether a claim cites the invoice. */
export async function isInvoiceCited(orgDb: OrgDb, id: string): Promise<boolean> {
  const rows = await orgDb.rows('select from claim_invoices where org_id = $1 and invoice_id = $2 limit 1', [
    orgDb.orgId,
    id,
  ]);
  return rows.length > 0;
}

/** Removes an invoice with its lines and runs. */
export async function deleteInvoice(inside: OrgDb, id: string): Promise<void> {
  for (const table of ['invoice_line_matches', 'invoice_lines', 'invoice_runs'])
    await inside.run(`delete from ${table} where org_id = $1 and invoice_id = $2`, [inside.orgId, id]);
  await inside.run('delete from invoices where org_id = $1 and id = $2', [inside.orgId, id]);
}

export interface InvoiceName {
  orgId: string;
  id: string;
}

/** Of these the ones that are not there. */
export async function listMissingInvoices(
  database: Database,
  names: readonly InvoiceName[],
): Promise<InvoiceName[]> {
  return unscoped(database, 'files of deleted invoices are removed, whosever they were', (system) =>
    system.rows<InvoiceName>(
      `select n.org_id as "orgId", n.id from unnest($1::uuid[], $2::uuid[]) n (org_id, id)
       where not exists (select from invoices i where i.org_id = n.org_id and i.id = n.id)`,
      [plainArray(names.map(({ orgId }) => orgId)), plainArray(names.map(({ id }) => id))],
    ),
  );
}
