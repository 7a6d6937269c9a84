import { parseArgs } from 'node:util';
import { parseInstant } from '../../domain/period.js';
import { findProvider, PROVIDERS, type Provider } from '../../domain/providers.js';
import { StartError } from '../../platform/startError.js';

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
  const { values, positionals } = parse(args);
  const [file, ...more] = positionals;
  if (file === undefined || more.length > 0) throw new StartError(`Give one file.\n${USAGE}`);
  const provider = values.provider === undefined ? undefined : findProvider(values.provider);
  if (values.provider !== undefined && !provider)
    throw new StartError(`--provider is ${values.provider}: give one of ${PROVIDERS.join(', ')}.\n${USAGE}`);
  if (values.yes && values['dry-run']) throw new StartError(`Give --dry-run or --yes, not both.\n${USAGE}`);
  return {
    file,
    provider,
    effectiveFrom: dayOf('--effective-from', values['effective-from']),
    retrievedOn: dayOf('--retrieved', values.retrieved),
    dryRun: values['dry-run'],
    yes: values.yes,
    acceptJumps: values['accept-jumps'],
    acceptSuspicious: values['accept-suspicious'],
  };
}

function dayOf(option: string, text: string | undefined): string | undefined {
  if (text === undefined || (/^\d{4}-\d{2}-\d{2}$/.test(text) && parseInstant(text))) return text;
  throw new StartError(`${option} is ${text}: give a day such as 2026-01-31.\n${USAGE}`);
}

function parse(args: string[]) {
  try {
    return parseArgs({
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
  } catch (error) {
    throw new StartError(`${(error as Error).message}\n${USAGE}`);
  }
}
