import { parseArgs } from 'node:util';
import { parseInstant } from '../../domain/period.js';
import { findProvider, PROVIDERS, type Provider } from '../../domain/providers.js';
import { StartError } from '../../platform/startError.js';

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
  const values = parse(args);
  const provider = values.provider === undefined ? undefined : findProvider(values.provider);
  if (!provider)
    throw new StartError(
      `--provider is ${values.provider ?? 'missing'}: give one of ${PROVIDERS.join(', ')}.\n${USAGE}`,
    );
  const format = AUDIT_FORMATS.find((known) => known === values.format);
  if (!format)
    throw new StartError(`--format is ${values.format}: give one of ${AUDIT_FORMATS.join(', ')}.\n${USAGE}`);
  return {
    provider,
    fromDay: readDay('from', values.from),
    toDay: readDay('to', values.to),
    org: values.org,
    format,
    failOnDifference: values['fail-on-difference'],
  };
}

function readDay(name: string, text: string | undefined): string | null {
  if (text === undefined) return null;
  if (!parseInstant(text)?.dateOnly)
    throw new StartError(`--${name} is ${text}: give a UTC day such as 2026-01-31.\n${USAGE}`);
  return text;
}

function parse(args: string[]) {
  try {
    return parseArgs({
      args,
      options: {
        provider: { type: 'string' },
        from: { type: 'string' },
        to: { type: 'string' },
        org: { type: 'string' },
        format: { type: 'string', default: 'table' },
        'fail-on-difference': { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    throw new StartError(`${(error as Error).message}\n${USAGE}`);
  }
}
