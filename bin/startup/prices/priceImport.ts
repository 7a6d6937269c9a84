import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { createInterface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';
import { readPriceCollection } from '../../../adapters/prices/readPriceCollection.js';
import type { Database } from '../../../db/client.js';
import { dayOf, microsFromDate } from '../../../domain/period.js';
import type { ModelDifference } from '../../../domain/pricing/imports/differences.js';
import { StartError } from '../../../platform/startError.js';
import {
  type PriceImportOptions,
  previewPriceImport,
  storePriceImport,
} from '../../../usecases/pricing/priceImport.js';
import type { PriceImportArguments } from './priceImportArguments.js';
import { describeDifferences } from './priceImportReport.js';

/** Largest collection that is read; the largest known one has 2 MB. */
const FILE_BYTES_MAX = 67_108_864;

/** Where a person reads and answers. */
export interface Terminal {
  input: Readable;
  output: Writable;
  /** False: nobody can be asked. */
  isInteractive: boolean;
}

/**
 * Shows what a price collection would change, asks, and imports it.
 * @throws StartError for a file that cannot be read, and where nobody can be asked.
 */
export async function importPrices(
  database: Database,
  args: PriceImportArguments,
  terminal: Terminal,
  now = new Date(),
): Promise<void> {
  const options = await readOptions(args, now);
  const preview = await previewPriceImport(database, options);
  const taken = preview.differences.models.filter(
    (model) => args.acceptSuspicious || model.suspicions.length === 0,
  );
  const say = (text: string) => terminal.output.write(`${text}\n`);
  say(describeDifferences(options, preview.differences, taken));
  if (taken.length === 0) return void say('Nothing to import.');
  if (args.dryRun) return void say('Nothing was stored (--dry-run).');
  if (!(await isWanted(args, taken, terminal))) return void say('Nothing was stored.');
  const version = await storePriceImport(database, options, preview, taken);
  if (version === undefined)
    throw new StartError('The prices have changed while you were looking: nothing was stored; start again.');
  say(`Imported. The prices are now ${version}; a running service takes them up within seconds.`);
}

async function readOptions(args: PriceImportArguments, now: Date): Promise<PriceImportOptions> {
  const found = await stat(args.file).catch(() => undefined);
  if (!found?.isFile()) throw new StartError(`${args.file} is no file that can be read.`);
  if (found.size > FILE_BYTES_MAX)
    throw new StartError(`${args.file} is larger than ${FILE_BYTES_MAX} bytes.`);
  const bytes = await readFile(args.file);
  try {
    return {
      collection: readPriceCollection(bytes),
      filename: basename(args.file).slice(0, 255),
      fileSha256: createHash('sha256').update(bytes).digest('hex'),
      retrievedOn: args.retrievedOn ?? dayOf(microsFromDate(found.mtime)),
      effectiveFrom: args.effectiveFrom ?? dayOf(microsFromDate(now)),
      provider: args.provider,
    };
  } catch (error) {
    throw error instanceof RangeError ? new StartError(`${args.file}: ${error.message}.`) : error;
  }
}

async function isWanted(
  args: PriceImportArguments,
  taken: readonly ModelDifference[],
  terminal: Terminal,
): Promise<boolean> {
  const jumps = taken.filter((model) => model.isJump);
  if (args.yes) {
    if (jumps.length === 0 || args.acceptJumps) return true;
    const names = jumps.slice(0, 5).map(({ listed }) => `${listed.provider} ${listed.model}`);
    throw new StartError(
      `Nothing was stored: ${jumps.length} models have a rate that more than doubles or halves (${names.join(', ')}). Give --accept-jumps when that is right.`,
    );
  }
  if (!terminal.isInteractive)
    throw new StartError(
      'Nothing was stored: nobody can be asked here. Give --yes, or --dry-run to look only.',
    );
  const ask = createInterface({ input: terminal.input, output: terminal.output });
  try {
    const warning = jumps.length === 0 ? '' : ` ${jumps.length} of them jump.`;
    const answer = await ask.question(`Import these ${taken.length} prices?${warning} [y/N] `);
    return /^y(?:es)?$/i.test(answer.trim());
  } finally {
    ask.close();
  }
}
