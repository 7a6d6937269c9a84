import { PROVIDERS, type Provider } from '../../../domain/providers.js';
import { misused, readCommandLine, readDay, requireProvider } from '../commandLine.js';

export const AUDIT_FORMATS = ['table', 'json', 'csv'] as const;
export type AuditFormat = (typeof AUDIT_FORMATS)[number];

const USAGE = `Usage: npm run audit -- --provider ${PROVIDERS.join('|')}
       [--from YYYY-MM-DD] [--to YYYY-MM-DD] [--org org_…] [--format ${AUDIT_FORMATS.join('|')}] [--fail-on-difference]`;

export interface AuditArguments {
  provider: Provider;
  fromDay: string | null;
  toDay: string | null;
  org: string | undefined;
  format: AuditFormat;
  /** End with exit code 1 where a charge is not at the agreed rate. */
  failOnDifference: boolean;
}

/**
 * What `npm run audit` was asked for.
 * @throws StartError with the usage.
 */
export function readAuditArguments(args: string[]): AuditArguments {
  const { values } = readCommandLine(USAGE, {
    args,
    options: {
      provider: { type: 'string' },
      from: { type: 'string' },
      to: { type: 'string' },
      org: { type: 'string' },
      format: { type: 'string', default: 'table' },
      'fail-on-difference': { type: 'boolean', default: false },
    },
  });
  const provider = requireProvider(values.provider, USAGE);
  const format = AUDIT_FORMATS.find((known) => known === values.format);
  if (!format) throw misused(`--format is ${values.format}: give one of ${AUDIT_FORMATS.join(', ')}.`, USAGE);
  return {
    provider,
    fromDay: readDay('from', values.from, USAGE) ?? null,
    toDay: readDay('to', values.to, USAGE) ?? null,
    org: values.org,
    format,
    failOnDifference: values['fail-on-difference'],
  };
}
