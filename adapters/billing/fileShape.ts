import { TABLE_FORMATS } from '../../domain/billing/formats/index.js';
import { type BillingFormat, factsOfFormat } from '../../domain/billing/sources.js';
import { holdsDocuments } from './documents.js';
import { flatRecords } from './tables/jsonLinesTable.js';

/** How a file is laid out; which bill it is, is told by the reader of its layout. */
export type FileShape = 'csv' | 'jsonLines' | 'parquet' | 'pages' | 'documents';

/** What a Parquet file begins, and ends, with. */
const PARQUET = Buffer.from('PAR1');

/** Of a file so much is looked at: the beginning of its first record. */
const HEAD_BYTES = 262_144;

/** What a file is, from its first bytes and, where it was named, its format. */
export function shapeOf(head: Buffer, format: BillingFormat | undefined): FileShape {
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
  return holdsDocuments(text, format) ? 'documents' : 'pages';
}

/** Whether the first line is a whole object whose fields are those of a table's header. */
function isRecordOfTable(text: string): boolean {
  const end = text.indexOf('\n');
  const line = end < 0 ? text : text.slice(0, end);
  try {
    const [first] = flatRecords(Buffer.from(line));
    const columns = new Set(first?.record.keys());
    return TABLE_FORMATS.some((format) => format.isHeader(columns));
  } catch {
    return false;
  }
}
