import { Readable } from 'node:stream';
import { type ExportedDispute, streamDisputes } from '../../db/queries/disputeExport.js';
import { publicId } from '../../domain/ids.js';
import { dayOf, isoFromMicros } from '../../domain/period.js';
import { type CsvCell, csvInteger, csvUsd, writeCsvRow } from '../csv.js';
import { defineEndpoint } from '../endpoint.js';
import { isoOrNull } from '../runWire.js';
import { DISPUTES_PATH, exportDisputesQuery } from './wire.js';

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

export const exportDisputes = defineEndpoint({
  operationId: 'exportDisputes',
  method: 'get',
  path: `${DISPUTES_PATH}/export`,
  tag: 'Financial',
  summary: 'What is and was asked back from providers, as CSV',
  description:
    'In the order in which they were opened, streamed. amount_usd is the exact sum of a dispute’s days, amount_cents the same rounded down. A transfer that ends without its last chunk is broken: fetch it again.',
  access: { scope: 'financial:read', workspace: 'refused' },
  limit: 'export',
  query: exportDisputesQuery,
  responses: { 200: { description: 'The disputes', contentType: 'text/csv' } },
  problems: [],
  async handle({ query, orgDb, signal }, deps) {
    const pages = streamDisputes(orgDb, query.status);
    // Read before the answer begins: a database that is away is an ordinary 503, not a broken transfer.
    const first = await pages.next();
    return {
      status: 200,
      headers: {
        'Content-Disposition': `attachment; filename="disputes-${dayOf(deps.nowMicros())}.csv"`,
      },
      content: {
        type: 'text/csv; charset=utf-8; header=present',
        data: Readable.from(writeRows(first, pages, signal)),
      },
    };
  },
});

async function* writeRows(
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
