import { z } from 'zod';
import type { BillingSource, ListedCharges } from '../../../db/billing/billingSources.js';
import { CHARGE_CATEGORIES } from '../../../domain/billing/billedRow.js';
import { BILLING_FORMATS } from '../../../domain/billing/sources.js';
import { publicId } from '../../../domain/ids.js';
import { usdNumberFromDecimal, usdNumberOrNull } from '../../../domain/money.js';
import { PROVIDERS } from '../../../domain/providers.js';
import { offsetParameters, pageFields } from '../../paging.js';
import { filterParameter } from '../../query.js';
import {
  presentProgress,
  presentRunEnd,
  progressSchema,
  runEndFields,
  runStatusSchema,
} from '../../runs/runWire.js';

export const IMPORTS_PATH = '/api/v1/billing-imports';

/** The upload form as documented; the handler parses it while it streams. */
export const importForm = z
  .strictObject({
    file: z.string().meta({
      format: 'binary',
      description: 'The bill, as the provider gives it',
    }),
    provider: z.enum(PROVIDERS),
    format: z.enum(BILLING_FORMATS).optional().meta({ description: 'Told from the content when absent' }),
    account: z.string().optional().meta({ description: 'Whose bill it is, where the file does not say' }),
    fx_rate: z.string().optional().meta({ description: 'US dollars for one unit of the file’s currency' }),
  })
  .meta({ id: 'BillingImportForm' });

export const listImportsQuery = z.object({
  provider: filterParameter.optional(),
  ...offsetParameters(),
});

const chargesFields = {
  currency: z.string(),
  rows: z.int(),
  amount: z.number().meta({ description: 'In that currency' }),
};

const unparsedSchema = z.strictObject({ label: z.string(), rows: z.int(), amount_usd: z.number() });

export const importSchema = z
  .strictObject({
    id: z.string().meta({ example: 'imp_0199f3a2c4d57e3a8f00112233445566' }),
    import_id: z.string(),
    kind: z.literal('billing_import'),
    status: runStatusSchema,
    provider: z.string(),
    provider_account_id: z
      .string()
      .nullable()
      .meta({ description: 'Null until it is read, and where the file holds several' }),
    filename: z.string(),
    sha256: z.string(),
    size_bytes: z.int(),
    format: z.string().nullable(),
    rows: z.int().nullable(),
    amount_usd: z.number().nullable().meta({ description: 'Sum of the cost rows, credits included' }),
    period_start: z.string().nullable().meta({ description: 'First UTC day' }),
    period_end: z.string().nullable().meta({ description: 'Last UTC day, inclusive' }),
    unparsed: z
      .array(unparsedSchema)
      .meta({ description: 'Labels that no grammar knows: kept as other, never guessed' }),
    left_out: z
      .array(z.strictObject({ charge_category: z.enum(CHARGE_CATEGORIES), ...chargesFields }))
      .meta({ description: 'Charges of services that are no model provider’s: no row is kept of them' }),
    unconverted: z
      .array(z.strictObject(chargesFields))
      .meta({ description: 'Charges that are kept in their own currency, since there is no rate for it' }),
    restated_buckets: z
      .int()
      .meta({ description: 'Buckets that a later page of the same file repeats; the later one counts' }),
    progress: progressSchema.meta({ description: 'In bytes of the file' }),
    result: z.strictObject({ rows: z.int(), amount_usd: z.number() }).nullable(),
    ...runEndFields('The same file was imported before: this is that import'),
  })
  .meta({ id: 'BillingImport' });

export type ImportWire = z.output<typeof importSchema>;

export const listImportsResponse = z.strictObject({ imports: z.array(importSchema), ...pageFields });

function presentCharges({ currency, rows, amount }: ListedCharges) {
  return { currency, rows, amount: usdNumberFromDecimal(amount) };
}

export function presentImport(source: BillingSource): ImportWire {
  const id = publicId('imp', source.id);
  const amountUsd = usdNumberOrNull(source.amountPico);
  return {
    id,
    import_id: id,
    kind: 'billing_import',
    status: source.status,
    provider: source.provider,
    provider_account_id: source.accountId ?? source.declaredAccount,
    filename: source.filename,
    sha256: source.sha256,
    size_bytes: source.sizeBytes,
    format: source.format ?? source.declaredFormat,
    rows: source.rowCount,
    amount_usd: amountUsd,
    period_start: source.periodStart,
    period_end: source.periodEnd,
    unparsed: source.unparsed.map(({ label, rows, amount_usd }) => ({
      label,
      rows,
      amount_usd: usdNumberFromDecimal(amount_usd),
    })),
    left_out: source.leftOut.map(({ charge_category, ...charges }) => ({
      charge_category,
      ...presentCharges(charges),
    })),
    unconverted: source.unconverted.map(presentCharges),
    restated_buckets: source.restatedBuckets,
    progress: presentProgress({ ...source, done: source.doneBytes, total: source.sizeBytes }),
    result:
      source.rowCount === null || amountUsd === null
        ? null
        : { rows: source.rowCount, amount_usd: amountUsd },
    ...presentRunEnd(source, `${IMPORTS_PATH}/${id}`),
  };
}
