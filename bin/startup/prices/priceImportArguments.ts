import { PROVIDERS, type Provider } from '../../../domain/providers.js';
import { misused, readCommandLine, readDay, readOneFile, readProvider } from '../commandLine.js';

const USAGE = `Usage: npm run prices:import -- FILE [--provider ${PROVIDERS.join('|')}] [--effective-from YYYY-MM-DD] [--retrieved YYYY-MM-DD]
       [--dry-run | --yes [--accept-jumps]] [--accept-suspicious]
  FILE                 LiteLLM's model_prices_and_context_window.json or models.dev's api.json
  --provider           takes that provider's prices only
  --effective-from     first UTC day of the new prices (today)
  --retrieved          the day on which the file was fetched (the day of the file)
  --dry-run            shows the differences and stores nothing
  --yes                asks nothing; refused where a rate more than doubles or halves, unless --accept-jumps
  --accept-suspicious  takes rates that look wrong too; else their models are left out`;

export interface PriceImportArguments {
  file: string;
  provider: Provider | undefined;
  effectiveFrom: string | undefined;
  retrievedOn: string | undefined;
  dryRun: boolean;
  yes: boolean;
  acceptJumps: boolean;
  acceptSuspicious: boolean;
}

/**
 * What `npm run prices:import` was asked for.
 * @throws StartError with the usage.
 */
export function readPriceImportArguments(args: string[]): PriceImportArguments {
  const { values, positionals } = readCommandLine(USAGE, {
    args,
    options: {
      provider: { type: 'string' },
      'effective-from': { type: 'string' },
      retrieved: { type: 'string' },
      'dry-run': { type: 'boolean', default: false },
      yes: { type: 'boolean', default: false },
      'accept-jumps': { type: 'boolean', default: false },
      'accept-suspicious': { type: 'boolean', default: false },
    },
    allowPositionals: true,
  });
  const file = readOneFile(positionals, USAGE);
  const provider = readProvider(values.provider, USAGE);
  if (values.yes && values['dry-run']) throw misused('Give --dry-run or --yes, not both.', USAGE);
  return {
    file,
    provider,
    effectiveFrom: readDay('effective-from', values['effective-from'], USAGE),
    retrievedOn: readDay('retrieved', values.retrieved, USAGE),
    dryRun: values['dry-run'],
    yes: values.yes,
    acceptJumps: values['accept-jumps'],
    acceptSuspicious: values['accept-suspicious'],
  };
}
