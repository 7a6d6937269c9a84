import { DomainError } from '../../errors.js';
import type { BillingFormat } from '../sources.js';
import { awsCur2, awsCurLegacy } from './awsCur.js';
import { azureCostDetails } from './azureCostDetails.js';
import { focus } from './focus.js';
import { googleBillingExport } from './googleBillingExport.js';
import { plainCsv } from './plainCsv.js';
import type { TableFormat } from './tableFormat.js';

/** Every kind of bill that is a table. */
export const TABLE_FORMATS: readonly TableFormat[] = [
  plainCsv,
  awsCur2,
  awsCurLegacy,
  azureCostDetails,
  googleBillingExport,
  focus,
];

/** Of a header that almost fits, so many missing columns are named. */
const MISSING_NAMED_MAX = 8;

/**
 * The format of a table with these lower-case columns: the one declared, else the only one that knows them. Error
 * invalid_billing_file naming the nearest format and what it misses.
 */
export function formatOfHeader(
  columns: ReadonlySet<string>,
  declared: BillingFormat | undefined,
): TableFormat {
  const candidates = TABLE_FORMATS.filter(({ format }) => declared === undefined || format === declared);
  const fitting = candidates.filter((format) => format.isHeader(columns));
  const [found, another] = fitting;
  if (found && !another) return found;
  if (found) {
    throw new DomainError(
      'invalid_billing_file',
      `the columns fit ${fitting.map(({ name }) => name).join(' and ')}; name one in format (${fitting.map(({ format }) => format).join(' or ')})`,
    );
  }
  throw new DomainError('invalid_billing_file', whatIsMissing(columns, candidates));
}

function whatIsMissing(columns: ReadonlySet<string>, candidates: readonly TableFormat[]): string {
  const share = ({ required }: TableFormat) =>
    required.filter((column) => columns.has(column)).length / required.length;
  const nearest = candidates.reduce<TableFormat>(
    (best, format) => (share(format) > share(best) ? format : best),
    candidates.includes(plainCsv) ? plainCsv : (candidates[0] ?? plainCsv),
  );
  const missing = nearest.required.filter((column) => !columns.has(column));
  const named = missing.slice(0, MISSING_NAMED_MAX).join(', ');
  if (missing.length === 0) return `the columns are not those of ${nearest.name}`;
  return missing.length === 1
    ? `the column ${named} is missing; ${nearest.name} has ${nearest.required.join(', ')}`
    : `the columns ${named} are missing${missing.length > MISSING_NAMED_MAX ? ' and others' : ''}; ${nearest.name} has ${nearest.required.join(', ')}`;
}
