/** The parameters of reports, and their validation. */
import type { Dimension } from './aggregate.js';

export type Width = '1m' | '1h' | '1d';

/** The parameters of one report, as its provider documents them. */
export interface ReportRules {
  path: string;
  widths: Partial<Record<Width, { default: number; max: number }>>;
  dimensions: readonly Dimension[];
  /** Parameter that filters → field of the results. */
  filters: Readonly<Record<string, string>>;
}

/** An error of the provider; `param` names the parameter at fault. */
export interface ProviderError {
  status: number;
  type: 'authentication' | 'permission' | 'invalid_request' | 'not_found' | 'rate_limit' | 'server';
  message: string;
  param?: string;
}

/** The names of the window's parameters at a provider. */
export interface TimeParameters {
  startParameter: string;
  endParameter: string;
  /** Seconds of a time parameter; undefined when it is none. */
  readTime(text: string): number | undefined;
}

const SECONDS_OF_WIDTH: Record<Width, number> = { '1m': 60, '1h': 3_600, '1d': 86_400 };

/** A request that the provider refuses. */
export class Refused extends Error {
  readonly error: ProviderError;
  constructor(error: ProviderError) {
    super(error.message);
    this.error = error;
  }
}

export const invalid = (message: string, param?: string) =>
  new Refused({ status: 400, type: 'invalid_request', message, ...(param === undefined ? {} : { param }) });

/** A validated request of a report. */
export interface AskedReport {
  startSeconds: number;
  endSeconds: number;
  widthSeconds: number;
  limit: number;
  groupBy: ReadonlySet<string>;
  filters: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Parses the parameters of a report; throws Refused with the provider's answer to the fault. */
export function readReportQuery(
  rules: ReportRules,
  times: TimeParameters,
  query: Record<string, string[]>,
  nowSeconds: number,
): AskedReport {
  const { startParameter, endParameter, readTime } = times;
  const known = ['bucket_width', 'limit', 'group_by', 'page', startParameter, endParameter];
  for (const name of Object.keys(query)) {
    if (!known.includes(name) && !(name in rules.filters)) throw invalid(`${name}: unknown parameter.`, name);
  }
  const time = (name: string) => {
    const text = query[name]?.[0];
    const seconds = text === undefined ? undefined : readTime(text);
    if (text !== undefined && seconds === undefined) throw invalid(`${name}: not a time.`, name);
    return seconds;
  };
  const startSeconds = time(startParameter);
  if (startSeconds === undefined)
    throw invalid(`${startParameter}: required parameter is missing.`, startParameter);
  const endSeconds = Math.min(time(endParameter) ?? nowSeconds, nowSeconds);
  const width = (query.bucket_width?.[0] ?? '1d') as Width;
  const limits = rules.widths[width];
  if (!limits) throw invalid('bucket_width: not a width of this report.', 'bucket_width');
  const limit = Number(query.limit?.[0] ?? limits.default);
  if (!Number.isInteger(limit) || limit < 1 || limit > limits.max) {
    throw invalid(`limit: must be from 1 to ${limits.max} for bucket_width=${width}.`, 'limit');
  }
  const groupBy = query.group_by ?? [];
  for (const field of groupBy) {
    if (!rules.dimensions.some((dimension) => dimension.field === field)) {
      throw invalid(`group_by: this report cannot be grouped by ${field}.`, 'group_by');
    }
  }
  const filters = Object.entries(rules.filters)
    .filter(([name]) => query[name] !== undefined)
    .map(([name, field]) => [field, new Set(query[name])] as const);
  const widthSeconds = SECONDS_OF_WIDTH[width];
  return {
    startSeconds,
    endSeconds,
    widthSeconds,
    limit,
    groupBy: new Set(groupBy),
    filters: new Map(filters),
  };
}

/** Lists come as `name[]=a&name[]=b` and as `name=a&name=b`. */
export function readQuery(parameters: URLSearchParams): Record<string, string[]> {
  const query: Record<string, string[]> = {};
  for (const [name, value] of parameters) {
    const plain = name.replace(/\[\]$/, '');
    query[plain] = [...(query[plain] ?? []), value];
  }
  return query;
}
