import { parseArgs } from 'node:util';
import { parseFxRate } from '../../domain/billing/pageRow.js';
import { BILLING_FORMATS, type BillingFormat, isBillingFormat } from '../../domain/billing/sources.js';
import { findProvider, PROVIDERS, type Provider } from '../../domain/providers.js';
import { StartError } from '../../platform/startError.js';

const USAGE = `Usage: npm run billing:import -- --provider ${PROVIDERS.join('|')} FILE
       [--account NAME] [--format ${BILLING_FORMATS.join('|')}] [--fx-rate USD_PER_UNIT] [--org org_…]`;

export interface BillArguments {
  provider: Provider;
  format: BillingFormat | null;
  account: string | null;
  fxRate: string | null;
  org: string | undefined;
  file: string;
}

/**
 * What `npm run billing:import` was asked for.
 * @throws StartError with the usage.
 */
export function readBillArguments(args: string[]): BillArguments {
  const { values, positionals } = parse(args);
  const provider = values.provider === undefined ? undefined : findProvider(values.provider);
  const [file, ...more] = positionals;
  if (!provider)
    throw new StartError(
      `--provider is ${values.provider ?? 'missing'}: give one of ${PROVIDERS.join(', ')}.\n${USAGE}`,
    );
  if (file === undefined || more.length > 0) throw new StartError(`Give one file.\n${USAGE}`);
  if (values.format !== undefined && !isBillingFormat(values.format))
    throw new StartError(
      `--format is ${values.format}: give one of ${BILLING_FORMATS.join(', ')}.\n${USAGE}`,
    );
  if (values['fx-rate'] !== undefined && !parseFxRate(values['fx-rate']))
    throw new StartError(
      `--fx-rate is ${values['fx-rate']}: give US dollars for one unit of the file's currency.\n${USAGE}`,
    );
  return {
    provider,
    format: values.format ?? null,
    account: values.account ?? null,
    fxRate: values['fx-rate'] ?? null,
    org: values.org,
    file,
  };
}

function parse(args: string[]) {
  try {
    return parseArgs({
      args,
      options: {
        provider: { type: 'string' },
        format: { type: 'string' },
        account: { type: 'string' },
        'fx-rate': { type: 'string' },
        org: { type: 'string' },
      },
      allowPositionals: true,
    });
  } catch (error) {
    throw new StartError(`${(error as Error).message}\n${USAGE}`);
  }
}
