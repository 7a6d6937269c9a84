import { PROVIDERS, type Provider } from '../../../domain/providers.js';
import { misused, readCommandLine, readDay, requireProvider } from '../commandLine.js';

export const RECONCILE_FORMATS = ['table', 'json', 'csv'] as const;
export type ReconcileFormat = (typeof RECONCILE_FORMATS)[number];

const USAGE = `Usage: npm run reconcile -- --provider ${PROVIDERS.join('|')}
       [--from YYYY-MM-DD] [--to YYYY-MM-DD] [--org org_…] [--format ${RECONCILE_FORMATS.join('|')}] [--fail-on-finding]`;

export interface ReconcileArguments {
  provider: Provider;
  fromDay: string | null;
  toDay: string | null;
  org: string | undefined;
  format: ReconcileFormat;
  /** End with exit code 1 where a finding asks somebody to do something. */
  failOnFinding: boolean;
}

/**
 * What `npm run reconcile` was asked for.
 * @throws StartError with the usage.
 */
export function readReconcileArguments(args: string[]): ReconcileArguments {
  const { values } = readCommandLine(USAGE, {
    args,
    options: {
      provider: { type: 'string' },
      from: { type: 'string' },
      to: { type: 'string' },
      org: { type: 'string' },
      format: { type: 'string', default: 'table' },
      'fail-on-finding': { type: 'boolean', default: false },
    },
  });
  const provider = requireProvider(values.provider, USAGE);
  const format = RECONCILE_FORMATS.find((known) => known === values.format);
  if (!format)
    throw misused(`--format is ${values.format}: give one of ${RECONCILE_FORMATS.join(', ')}.`, USAGE);
  return {
    provider,
    fromDay: readDay('from', values.from, USAGE) ?? null,
    toDay: readDay('to', values.to, USAGE) ?? null,
    org: values.org,
    format,
    failOnFinding: values['fail-on-finding'],
  };
}
