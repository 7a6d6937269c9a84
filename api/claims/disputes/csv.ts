import type { ExportedDispute } from '../../../db/claims/disputes.js';
import { publicId } from '../../../domain/ids.js';
import { isoFromMicros, isoOrNull } from '../../../domain/period.js';
import { type CsvCell, csvInteger, csvUsd, writeCsvRow } from '../../csv.js';

const COLUMNS: readonly (readonly [name: string, cell: (dispute: ExportedDispute) => CsvCell])[] = [
  ['dispute_id', ({ id }) => publicId('dsp', id)],
  ['claim_id', ({ claimId }) => (claimId === null ? null : publicId('clm', claimId))],
  ['provider', ({ provider }) => provider],
  ['model', ({ model }) => model],
  ['period_start', ({ periodStart }) => periodStart],
  ['period_end', ({ periodEnd }) => periodEnd],
  ['kind', ({ kind }) => kind],
  ['status', ({ status }) => status],
  ['amount_usd', ({ amountPico }) => csvUsd(amountPico)],
  ['amount_cents', ({ amountCents }) => csvInteger(amountCents)],
  ['confidence_tier', ({ tier }) => tier],
  ['reason', ({ reason }) => reason],
  ['resolution', ({ resolution }) => resolution],
  ['notes', ({ notes }) => notes],
  ['opened_at', ({ openedAtMicros }) => isoFromMicros(openedAtMicros)],
  ['resolved_at', ({ resolvedAtMicros }) => isoOrNull(resolvedAtMicros)],
];

/** Writes the header, then the rows of each page as it is read; the caller has read the first page. */
export async function* writeDisputesCsv(
  first: IteratorResult<ExportedDispute[], unknown>,
  rest: AsyncGenerator<ExportedDispute[]>,
  signal: AbortSignal,
): AsyncGenerator<string> {
  yield writeCsvRow(COLUMNS.map(([name]) => name));
  if (first.done) return;
  yield textOf(first.value);
  for await (const page of rest) {
    if (signal.aborted) return;
    yield textOf(page);
  }
}

const textOf = (page: readonly ExportedDispute[]): string =>
  page.map((dispute) => writeCsvRow(COLUMNS.map(([, cell]) => cell(dispute)))).join('');
