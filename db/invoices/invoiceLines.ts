import type { EffectiveLine, LineCorrection } from '../../domain/invoices/correctLine.js';
import type { InvoiceLineReading, Scaled } from '../../domain/invoices/invoiceReading.js';
import type { Stored } from '../../domain/invoices/storedReading.js';
import type { BilledSum, LineMatch, TiedLine } from '../../domain/invoices/tieOut.js';
import { decimalFromPico } from '../../domain/money.js';
import { column, converted, defineEntity } from '../entity.js';
import type { OrgDb } from '../orgDb.js';
import { jsonLines, jsonLinesSql, plainArray, textArray } from '../pgArray.js';

export interface StoredLine extends EffectiveLine {
  extracted: Stored<InvoiceLineReading>;
  corrected: Stored<LineCorrection> | null;
  correctedAtMicros: bigint | null;
  correctedBy: string | null;
  matchStatus: LineMatch | null;
  /** The part of the bill that belongs to the line, in the currency of the comparison. */
  matchedAmount: Scaled | null;
  difference: Scaled | null;
  observedTokens: Scaled | null;
}

const LINES = defineEntity<StoredLine>('invoice_lines', {
  line: column('line_no'),
  description: column(),
  quantity: column(),
  unitPrice: column(),
  amount: column(),
  tax: column(),
  periodStart: column(),
  periodEnd: column(),
  kind: column(),
  model: column(),
  tokenClass: column(),
  extracted: column(),
  corrected: converted((value: Stored<LineCorrection> | null) => value),
  correctedAtMicros: column(),
  correctedBy: column(),
  matchStatus: column(),
  matchedAmount: column(),
  difference: column(),
  observedTokens: column(),
});

/** An invoice's lines in the order of the document. */
export async function listInvoiceLines(orgDb: OrgDb, invoiceId: string): Promise<StoredLine[]> {
  const rows = await orgDb.rows<StoredLine>(
    `select ${LINES.columns} from invoice_lines where org_id = $1 and invoice_id = $2 order by line_no`,
    [orgDb.orgId, invoiceId],
  );
  return LINES.read(rows);
}

const decimal = (value: Scaled | null) => (value === null ? null : decimalFromPico(value));

/** Stores the lines of a reading in place of those that were there, with what they were compared with. */
export async function replaceInvoiceLines(
  inside: OrgDb,
  invoiceId: string,
  lines: readonly (EffectiveLine & { extracted: Stored<InvoiceLineReading> })[],
): Promise<void> {
  for (const table of ['invoice_line_matches', 'invoice_lines'])
    await inside.run(`delete from ${table} where org_id = $1 and invoice_id = $2`, [inside.orgId, invoiceId]);
  await inside.run(
    `insert into invoice_lines (org_id, invoice_id, line_no, description, quantity, unit_price, amount, tax, period_start, period_end, kind, model, token_class, extracted)
     select $1::uuid, $2::uuid, l.* from unnest($3::integer[], $4::text[], $5::numeric[], $6::numeric[], $7::numeric[], $8::numeric[], $9::date[], $10::date[],
       $11::text[], $12::text[], $13::text[], ${jsonLinesSql('$14')}) l`,
    [
      inside.orgId,
      invoiceId,
      plainArray(lines.map(({ line }) => line)),
      textArray(lines.map(({ description }) => description)),
      plainArray(lines.map(({ quantity }) => decimal(quantity))),
      plainArray(lines.map(({ unitPrice }) => decimal(unitPrice))),
      plainArray(lines.map(({ amount }) => decimal(amount))),
      plainArray(lines.map(({ tax }) => decimal(tax))),
      plainArray(lines.map(({ periodStart }) => periodStart)),
      plainArray(lines.map(({ periodEnd }) => periodEnd)),
      textArray(lines.map(({ kind }) => kind)),
      textArray(lines.map(({ model }) => model)),
      textArray(lines.map(({ tokenClass }) => tokenClass)),
      jsonLines(lines.map(({ extracted }) => extracted)),
    ],
  );
}

/** Stores what a person wrote of a line; all fields that they ever corrected are in `corrected`. */
export async function recordCorrection(
  inside: OrgDb,
  invoiceId: string,
  { line, corrected, by }: { line: EffectiveLine; corrected: Stored<LineCorrection>; by: string },
): Promise<void> {
  await inside.run(
    `update invoice_lines set corrected = $4::jsonb, corrected_at = now(), corrected_by = $5, description = $6, quantity = $7::numeric,
       unit_price = $8::numeric, amount = $9::numeric, tax = $10::numeric, kind = $11, model = $12, token_class = $13,
       match_status = null, matched_amount = null, difference = null, observed_tokens = null
     where org_id = $1 and invoice_id = $2 and line_no = $3`,
    [
      inside.orgId,
      invoiceId,
      line.line,
      JSON.stringify(corrected),
      by,
      line.description,
      decimal(line.quantity),
      decimal(line.unitPrice),
      decimal(line.amount),
      decimal(line.tax),
      line.kind,
      line.model,
      line.tokenClass,
    ],
  );
}

/** Stores how lines compare, in place of what was stored before. A line that is not named is not compared. */
export async function recordLineTies(
  inside: OrgDb,
  invoiceId: string,
  lines: readonly TiedLine[],
): Promise<void> {
  await inside.run('delete from invoice_line_matches where org_id = $1 and invoice_id = $2', [
    inside.orgId,
    invoiceId,
  ]);
  await inside.run(
    `update invoice_lines l set match_status = t.status, matched_amount = t.matched, difference = t.difference, observed_tokens = t.tokens
     from invoice_lines stored left join unnest($3::integer[], $4::text[], $5::numeric[], $6::numeric[], $7::numeric[]) t (line_no, status, matched, difference, tokens) using (line_no)
     where l.org_id = $1 and l.invoice_id = $2 and stored.org_id = $1 and stored.invoice_id = $2 and l.line_no = stored.line_no`,
    [
      inside.orgId,
      invoiceId,
      plainArray(lines.map(({ line }) => line)),
      textArray(lines.map(({ status }) => status)),
      plainArray(lines.map(({ billed }) => decimal(billed))),
      plainArray(lines.map(({ difference }) => decimal(difference))),
      plainArray(lines.map(({ observedTokens }) => decimal(observedTokens))),
    ],
  );
  const matches = lines.flatMap(({ line, rows }) => rows.map((row) => ({ line, ...row })));
  if (matches.length === 0) return;
  await inside.run(
    `insert into invoice_line_matches (org_id, invoice_id, line_no, provider_account_id, day, model, token_class, charge_category, billed_amount, billed_quantity)
     select $1::uuid, $2::uuid, m.* from unnest($3::integer[], $4::text[], $5::date[], $6::text[], $7::text[], $8::text[], $9::numeric[], $10::numeric[]) m`,
    [
      inside.orgId,
      invoiceId,
      plainArray(matches.map(({ line }) => line)),
      textArray(matches.map(({ accountId }) => accountId)),
      plainArray(matches.map(({ day }) => day)),
      textArray(matches.map(({ model }) => model ?? '')),
      textArray(matches.map(({ tokenClass }) => tokenClass)),
      textArray(matches.map(({ category }) => category)),
      plainArray(matches.map(({ amount }) => decimal(amount))),
      plainArray(matches.map(({ quantity }) => decimal(quantity))),
    ],
  );
}

/** The billed rows of each line, in the order of lines and days. */
export async function listLineMatches(
  orgDb: OrgDb,
  invoiceId: string,
): Promise<(BilledSum & { line: number })[]> {
  return orgDb.rows(
    `select line_no as line, provider_account_id as "accountId", day, nullif(model, '') as model, token_class as "tokenClass", charge_category as category,
       billed_amount as amount, billed_quantity as quantity
     from invoice_line_matches where org_id = $1 and invoice_id = $2 order by line_no, day, model, token_class, charge_category`,
    [orgDb.orgId, invoiceId],
  );
}
