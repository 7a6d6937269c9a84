/** The pages of a bill as they were received: uploaded files, and what connections fetched. */
import { createHash } from 'node:crypto';
import { type EvidenceSource, listPagesOfSource, readFileBytes } from '../../db/claims/claimEvidence.js';
import type { OrgDb } from '../../db/orgDb.js';
import { fxRateOn } from '../../domain/billing/connectionScope.js';

/** A file that is larger is not read again: it would be in memory as a whole. */
const FILE_BYTES_MAX = 134_217_728;

/** The rate that was given with a file, or with the connection for a day. */
export function fxTextOf({ declaredFxRate, settings }: EvidenceSource, day: string): string | null {
  return declaredFxRate ?? (settings === null ? null : (fxRateOn(settings, day) ?? null));
}

/** A page of a bill as it is stored. */
export interface ReceivedPage {
  bytes: Buffer | null;
  url: string | null;
  filename: string | null;
  sha256: string;
  sizeBytes: number;
  fetchedAtMicros: bigint;
  providerRequestId: string | null;
  previousCursor: string | null;
}

/** The pages that a source was read from, in their order; each is in memory as a whole. */
export async function* streamReceivedPages(
  inside: OrgDb,
  source: EvidenceSource,
): AsyncGenerator<ReceivedPage> {
  if (source.kind === 'file') {
    const isLarge = source.sizeBytes > FILE_BYTES_MAX;
    const bytes = isLarge ? null : await readFileBytes(inside, source.id);
    yield {
      bytes: bytes !== null && bytes.length === source.sizeBytes ? bytes : null,
      url: null,
      filename: source.filename,
      sha256: source.sha256,
      sizeBytes: source.sizeBytes,
      fetchedAtMicros: source.fetchedAtMicros,
      providerRequestId: null,
      previousCursor: null,
    };
    return;
  }
  for (const page of await listPagesOfSource(inside, source.id)) {
    yield {
      bytes: page.body,
      url: `${HOSTS[source.provider] ?? ''}${page.requestPath}`,
      filename: null,
      sha256: page.sha256,
      sizeBytes: page.body.length,
      fetchedAtMicros: page.fetchedAtMicros,
      providerRequestId: page.providerRequestId,
      previousCursor: page.previousCursor,
    };
  }
}

/** Where each provider's reports are asked for. */
const HOSTS: Readonly<Record<string, string>> = {
  openai: 'https://api.openai.com',
  anthropic: 'https://api.anthropic.com',
  azure_openai: 'https://management.azure.com',
  aws_bedrock: 'https://ce.us-east-1.amazonaws.com',
};

export const isAsReceived = (page: ReceivedPage): boolean =>
  page.bytes !== null && createHash('sha256').update(page.bytes).digest('hex') === page.sha256;

/** Packed and columnar files are shown by their records: whoever checks them needs no reader of such files. */
export const isText = (bytes: Buffer): boolean =>
  !(bytes[0] === 0x1f && bytes[1] === 0x8b) && bytes.subarray(0, 4).toString('latin1') !== 'PAR1';

export function nameOf(source: EvidenceSource, page: ReceivedPage): string {
  const text =
    page.filename ?? `${source.provider}-${page.url?.split('?')[0]?.split('/').at(-1) ?? 'page'}.json`;
  return (
    text
      .replace(/[^A-Za-z0-9._-]+/g, '-')
      .slice(-60)
      .replace(/^[-.]+/, '') || 'page'
  );
}
