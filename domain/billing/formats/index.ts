import { DomainError } from '../../errors.js';
import type { Provider } from '../../providers.js';
import type { BilledRow, ChargeCategory } from '../billedRow.js';
import type { FxRate, PageObject } from '../pageRow.js';
import { type BillingFormat, factsOfFormat } from '../sources.js';
import { awsCostExplorer } from './awsCostExplorer.js';
import { awsCur2, awsCurLegacy } from './awsCur.js';
import { azureCostDetails } from './azureCostDetails.js';
import { azureQuery } from './azureQuery.js';
import { focus } from './focus.js';
import { googleBillingExport } from './googleBillingExport.js';
import { mistralUsage } from './mistralUsage.js';
import { plainCsv } from './plainCsv.js';
import type { LeftOut, TableFormat } from './tableFormat.js';
import { xaiInvoices } from './xaiInvoice.js';

export const TABLE_FORMATS: readonly TableFormat[] = [
  plainCsv,
  awsCur2,
  awsCurLegacy,
  azureCostDetails,
  googleBillingExport,
  focus,
];

/** Maximum missing columns that an error names for a header that nearly fits. */
const MISSING_NAMED_MAX = 8;

/** The header of a table; JSON and CSV have different words for cells. */
export interface TableHead {
  /** In lower case; for JSON, the fields of the first record. */
  columns: ReadonlySet<string>;
  layout: 'columns' | 'json';
}

/** A header with this share of a format's columns is probably of that format. */
const SIMILAR_SHARE = 0.5;

/**
 * The declared format, else the only one that accepts the columns. Error invalid_billing_file with the most
 * similar format.
 */
export function formatOfHeader(
  head: TableHead,
  declared: BillingFormat | undefined,
  provider: Provider | undefined,
): TableFormat {
  const candidates = TABLE_FORMATS.filter(({ format }) => declared === undefined || format === declared);
  const fitting = candidates.filter((format) => format.isHeader(head.columns));
  const [found, another] = fitting;
  if (found && !another) return found;
  if (found) {
    throw new DomainError(
      'invalid_billing_file',
      `the columns fit ${fitting.map(({ name }) => name).join(' and ')}; name one in format (${fitting.map(({ format }) => format).join(' or ')})`,
    );
  }
  const isUnlike = candidates.every((format) => shareOf(format, head.columns) < SIMILAR_SHARE);
  throw new DomainError(
    'invalid_billing_file',
    head.layout === 'json' && declared === undefined && isUnlike
      ? readableJson(provider)
      : missingColumns(head, candidates),
  );
}

/** Whether a header has most columns of some table format. */
export function isLikeTable(columns: ReadonlySet<string>): boolean {
  return TABLE_FORMATS.some(
    (format) => format.isHeader(columns) || shareOf(format, columns) >= SIMILAR_SHARE,
  );
}

function shareOf({ required }: TableFormat, columns: ReadonlySet<string>): number {
  return required.filter((column) => columns.has(column)).length / required.length;
}

function missingColumns({ columns, layout }: TableHead, candidates: readonly TableFormat[]): string {
  const nearest = candidates.reduce<TableFormat>(
    (best, format) => (shareOf(format, columns) > shareOf(best, columns) ? format : best),
    candidates.includes(plainCsv) ? plainCsv : (candidates[0] ?? plainCsv),
  );
  const missing = nearest.required.filter((column) => !columns.has(column));
  const named = missing.slice(0, MISSING_NAMED_MAX).join(', ');
  const word = layout === 'json' ? 'field' : 'column';
  if (missing.length === 0) return `the ${word}s are not those of ${nearest.name}`;
  return missing.length === 1
    ? `the ${word} ${named} is missing; ${nearest.name} has ${nearest.required.join(', ')}`
    : `the ${word}s ${named} are missing${missing.length > MISSING_NAMED_MAX ? ' and others' : ''}; ${nearest.name} has ${nearest.required.join(', ')}`;
}

/** A sentence for JSON that is no bill, with the JSON formats that are accepted. */
function readableJson(provider: Provider | undefined): string {
  const names = [...DOCUMENT_FORMATS, ...TABLE_FORMATS.filter((format) => format !== plainCsv)]
    .filter(({ format }) => {
      const issuer = factsOfFormat(format).provider;
      return provider === undefined || issuer === undefined || issuer === provider;
    })
    .map(({ name }) => name);
  const whose = provider === undefined ? '' : ` as one of ${provider}`;
  return `this JSON file is no bill that is read${whose}; give ${names.join(', ')} or records with the fields ${plainCsv.required.join(', ')}`;
}

/** The state that the documents of one file share while they are read in order. */
export interface DocumentContext {
  /** The rate given with the file; a rate in the bill counts before it. */
  fxRate: FxRate;
  /** The rate for one day of the bill, if the given rates differ by day. */
  fxRateOn(day: string): FxRate;
  /** The charge category that a connection requested, for answers that do not contain it. */
  asked: ChargeCategory | undefined;
  /** Keys of rows that were already read, in the format's own notation. */
  seen: Set<string>;
}

/** A kind of bill that consists of JSON documents, each complete in itself. */
export interface DocumentFormat {
  readonly format: BillingFormat;
  readonly name: string;
  /** Matches the beginning of a file of this format; its documents may be cut. */
  readonly looksLike: RegExp;
  isDocument(document: PageObject): boolean;
  /** Error invalid_billing_file with the field. */
  read(document: PageObject, context: DocumentContext): { rows: BilledRow[]; leftOut?: LeftOut[] };
}

export const DOCUMENT_FORMATS: readonly DocumentFormat[] = [
  azureQuery,
  awsCostExplorer,
  mistralUsage,
  xaiInvoices,
];
