import { parseFxRate } from '../../../domain/billing/pageRow.js';
import { BILLING_FORMATS, type BillingFormat, isBillingFormat } from '../../../domain/billing/sources.js';
import { PROVIDERS, type Provider } from '../../../domain/providers.js';
import { misused, readCommandLine, readOneFile, requireProvider } from '../commandLine.js';

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
  const { values, positionals } = readCommandLine(USAGE, {
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
  const provider = requireProvider(values.provider, USAGE);
  const file = readOneFile(positionals, USAGE);
  if (values.format !== undefined && !isBillingFormat(values.format))
    throw misused(`--format is ${values.format}: give one of ${BILLING_FORMATS.join(', ')}.`, USAGE);
  if (values['fx-rate'] !== undefined && !parseFxRate(values['fx-rate']))
    throw misused(
      `--fx-rate is ${values['fx-rate']}: give US dollars for one unit of the file's currency.`,
      USAGE,
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
