import { isLikeTable } from '../../domain/billing/formats/index.js';
import { type BillingFormat, factsOfFormat } from '../../domain/billing/sources.js';
import type { Provider } from '../../domain/providers.js';
import { holdsDocuments } from './documents.js';
import { firstRecord } from './tables/jsonLinesTable.js';

/** How a file is laid out; which bill it is, is told by the reader of its layout. */
export type FileShape = 'csv' | 'jsonLines' | 'parquet' | 'pages' | 'documents';

/** What a Parquet file begins, and ends, with. */
const PARQUET = Buffer.from('PAR1');

/** Of a file so much is looked at: the beginning of its first record. */
export const HEAD_BYTES = 262_144;

/** Whose reports come as pages. */
const PAGE_PROVIDERS: ReadonlySet<Provider> = new Set(['openai', 'anthropic']);
const PAGE = /"data"\s*:\s*\[/;

/** What a file is, from its first bytes, its provider and, where it was named, its format. */
export function shapeOf(head: Buffer, format: BillingFormat | undefined, provider: Provider): FileShape {
  if (head.subarray(0, 4).equals(PARQUET)) return 'parquet';
  const text = head
    .subarray(0, HEAD_BYTES)
    .toString('utf8')
    .replace(/^\ufeff/, '')
    .trimStart();
  if (format !== undefined && holdsDocuments(text, format)) return 'documents';
  const shape = format === undefined ? undefined : factsOfFormat(format).shape;
  if (text[0] !== '{' && text[0] !== '[') return shape === undefined || shape === 'table' ? 'csv' : 'pages';
  if (shape === 'table' || (shape === undefined && isRecordOfTable(text))) return 'jsonLines';
  if (holdsDocuments(text, format)) return 'documents';
  // What is none of these is told by the columns that it misses, but to those whose reports are pages.
  return shape === 'pages' || PAGE_PROVIDERS.has(provider) || PAGE.test(text) ? 'pages' : 'jsonLines';
}

/** Whether the first object, alone or in an array, has most fields of a table's header. */
function isRecordOfTable(text: string): boolean {
  return isLikeTable(new Set(firstRecord(Buffer.from(text))?.record.keys()));
}
