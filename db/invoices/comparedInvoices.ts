import type { InvoiceTieReason } from '../../domain/invoices/invoice.js';
import type { Scaled } from '../../domain/invoices/invoiceReading.js';
import type { Tie } from '../../domain/invoices/tieOut.js';
import type { Provider } from '../../domain/providers.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';
import type { StoredInvoice } from './invoices.js';

/** Invoices that count, as other subjects ask for them. */
/** Another invoice that counts, with what it charges for usage in its own currency. */
export type PeerInvoiceRow = Pick<
  StoredInvoice,
  'id' | 'number' | 'numberNormalised' | 'filename' | 'issueDate' | 'createdAtMicros' | 'status'
> & {
  periodStart: string;
  periodEnd: string;
  usage: Scaled;
  /** Of it: lines that say the same as an earlier line. */
  repeated: Scaled;
};

/** SQL: whether an invoice counts: no receipt, no copy, not replaced, and read without a contradiction or confirmed. */
const COUNTS = (i: string) =>
  `${i}.document_kind <> 'receipt' and ${i}.duplicate_of is null and (${i}.arithmetic_ok or ${i}.confirmed_at is not null)
   and ${i}.status in ('matching', 'reconciled', 'needs_review')
   and not exists (select from invoices r where r.org_id = ${i}.org_id and r.replaces = ${i}.id and r.status <> 'failed')`;

/** The invoices of an account and currency beside one that share days with it, by upload. */
export async function listPeerInvoices(
  orgDb: OrgDb,
  wanted: {
    id: string;
    provider: Provider;
    providerAccountId: string;
    fromDay: string;
    toDay: string;
    currency: string | null;
  },
): Promise<PeerInvoiceRow[]> {
  return orgDb.rows<PeerInvoiceRow>(
    `select i.id, i.number, i.number_normalised as "numberNormalised", i.filename, i.issue_date as "issueDate", i.created_at as "createdAtMicros",
       i.status, i.period_start as "periodStart", i.period_end as "periodEnd",
       coalesce((select sum(amount) from invoice_lines l where l.org_id = $1 and l.invoice_id = i.id and l.kind = 'usage'), 0) as usage,
       coalesce((select sum(amount * (times - 1)) from (
         select amount, count(*) as times from invoice_lines l where l.org_id = $1 and l.invoice_id = i.id and l.kind = 'usage' and l.amount > 0
         group by lower(l.description), l.quantity, l.unit_price, l.amount, l.period_start, l.period_end) same), 0) as repeated
     from invoices i
     where i.org_id = $1 and i.id <> $2 and i.provider = $3 and i.provider_account_id = $4 and i.period_start <= $6 and i.period_end >= $5
       and i.currency is not distinct from $7 and ${COUNTS('i')}
     order by i.created_at, i.id`,
    [
      ...[orgDb.orgId, wanted.id, wanted.provider, wanted.providerAccountId],
      ...[wanted.fromDay, wanted.toDay, wanted.currency],
    ],
  );
}

/** Invoices of a provider that were compared, or wait for a bill, and charge for one of the days; the newest first. */
export async function listRematchable(
  orgDb: OrgDb,
  wanted: { provider: Provider; fromDay: string; toDay: string; exceptId?: string; limit: number },
): Promise<Pick<StoredInvoice, 'id' | 'status'>[]> {
  return orgDb.rows(
    `select i.id, i.status from invoices i
     where i.org_id = $1 and i.provider = $2 and i.period_start <= $4 and i.period_end >= $3 and i.id is distinct from $5
       and i.status in ('reconciled', 'needs_review') and i.provider_account_id is not null and ${COUNTS('i')}
     order by i.created_at desc, i.id limit $6`,
    [orgDb.orgId, wanted.provider, wanted.fromDay, wanted.toDay, wanted.exceptId ?? null, wanted.limit],
  );
}

/** An invoice that was compared with the bill of its days. */
export interface ComparedInvoice {
  id: string;
  number: string | null;
  filename: string;
  provider: string;
  accountId: string;
  /** Both inclusive. */
  fromDay: string;
  toDay: string;
  issueDate: string | null;
  currency: string | null;
  total: Scaled | null;
  tie: Tie;
  tieReason: InvoiceTieReason | null;
  /** Usage by the invoice and by the bill, in `tieCurrency`. */
  tieCurrency: string | null;
  comparedAmount: Scaled | null;
  billedAmount: Scaled | null;
}

/** The invoices that count and charge for a day of a half-open window, by provider, account and first day. */
export async function listComparedInvoices(
  orgDb: OrgDb,
  window: { provider: string | null; fromDay: string; toDay: string },
): Promise<ComparedInvoice[]> {
  return orgDb.rows<ComparedInvoice>(
    `select i.id, i.number, i.filename, i.provider, i.provider_account_id as "accountId", i.period_start as "fromDay", i.period_end as "toDay",
       i.issue_date as "issueDate", i.currency, i.total, i.tie, i.tie_reason as "tieReason", i.tie_currency as "tieCurrency",
       i.compared_amount as "comparedAmount", i.billed_amount as "billedAmount"
     from invoices i
     where i.org_id = $1 and ($2::text is null or i.provider = $2) and i.period_start < $4 and i.period_end >= $3
       and i.provider_account_id is not null and i.tie is not null and ${COUNTS('i')}
     order by i.provider, i.provider_account_id, i.period_start, i.issue_date, i.id`,
    [orgDb.orgId, window.provider, window.fromDay, window.toDay],
  );
}

/** Credit that an invoice sold ahead. */
export interface PurchaseLine {
  provider: string;
  accountId: string;
  invoiceId: string;
  line: number;
  /** Of issue, else the first that the invoice charges for. */
  day: string;
  amount: Scaled;
  currency: string;
  /** Dollars for one unit of the currency; null where no rate is known and it is not the dollar. */
  fxRate: Scaled | null;
}

/** Credit bought ahead by the invoices that count, of one provider or of all. */
export async function listPurchaseLines(orgDb: OrgDb, provider: string | null): Promise<PurchaseLine[]> {
  return orgDb.rows<PurchaseLine>(
    `select i.provider, i.provider_account_id as "accountId", i.id as "invoiceId", l.line_no as line,
       coalesce(i.issue_date, i.period_start, i.created_at::date)::text as day, l.amount, i.currency,
       case when i.currency = 'USD' then 1::numeric else i.declared_fx_rate end as "fxRate"
     from invoices i join invoice_lines l on l.org_id = $1 and l.invoice_id = i.id and l.kind = 'prepaid_purchase'
     where i.org_id = $1 and ($2::text is null or i.provider = $2) and i.provider_account_id is not null and i.currency is not null and ${COUNTS('i')}
     order by 1, 2, 5, 3, 4`,
    [orgDb.orgId, provider],
  );
}

/** The place of a day of an account and model on an invoice. */
export interface InvoicePlace {
  invoiceId: string;
  /** From 1. */
  line: number;
}

/** The invoice line that charges the most of each of these days, in the order of the days; null where none does. */
export async function listMatchInvoices(
  orgDb: OrgDb,
  days: readonly { provider: string; accountId: string; model: string; day: string }[],
): Promise<(InvoicePlace | null)[]> {
  const found = days.map((): InvoicePlace | null => null);
  if (days.length === 0) return found;
  const rows = await orgDb.rows<InvoicePlace & { at: number }>(
    `select distinct on (t.at) t.at, m.invoice_id as "invoiceId", m.line_no as line
     from unnest($2::text[], $3::text[], $4::text[], $5::date[]) with ordinality as t (provider, account, model, day, at)
     cross join lateral (select invoice_id, line_no, billed_amount from invoice_line_matches where org_id = $1 and day = t.day
       and provider_account_id = t.account and model = t.model offset 0) m
     join invoices i on i.org_id = $1 and i.id = m.invoice_id and i.provider = t.provider and ${COUNTS('i')}
     order by t.at, i.tie in ('exact', 'close') desc, m.billed_amount desc, m.invoice_id, m.line_no`,
    [
      orgDb.orgId,
      textArray(days.map(({ provider }) => provider)),
      textArray(days.map(({ accountId }) => accountId)),
      textArray(days.map(({ model }) => model)),
      plainArray(days.map(({ day }) => day)),
    ],
  );
  for (const { at, invoiceId, line } of rows) found[at - 1] = { invoiceId, line };
  return found;
}

/** Notes which invoices a claim cites: none of them is deleted while the claim is there. */
export async function recordCitedInvoices(
  inside: OrgDb,
  claimId: string,
  invoiceIds: readonly string[],
): Promise<void> {
  if (invoiceIds.length === 0) return;
  await inside.run(
    `insert into claim_invoices (org_id, claim_id, invoice_id)
     select $1::uuid, $2::uuid, unnest($3::uuid[]) on conflict do nothing`,
    [inside.orgId, claimId, plainArray(invoiceIds)],
  );
}
