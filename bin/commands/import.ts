import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Command, Option } from 'commander';
import { recordAudit } from '../../db/access/auditLog.js';
import { BILLING_IMPORTS, type BillingSource } from '../../db/billing/billingSources.js';
import { OrgDb } from '../../db/orgDb.js';
import { findRun } from '../../db/runs/runTable.js';
import { parseFxRate } from '../../domain/billing/pageRow.js';
import { BILLING_FORMATS, type BillingFormat } from '../../domain/billing/sources.js';
import { DomainError } from '../../domain/errors.js';
import { newUuid, publicId } from '../../domain/ids.js';
import { decimalFromPico } from '../../domain/money.js';
import { microsFromDate } from '../../domain/period.js';
import type { Provider } from '../../domain/providers.js';
import { RUN_TERMINAL_STATUSES } from '../../domain/runs/runKinds.js';
import { Misuse, StartError } from '../../platform/startError.js';
import {
  BILLING_PAGE_BYTES,
  storeBillingUpload,
  type UploadedBill,
} from '../../usecases/billing/billingUpload.js';
import { importFromFile } from '../backup/dataFile.js';
import { describeBooks, endOnSignal, inSeconds } from '../backup/words.js';
import { historyCommand } from '../history/command.js';
import { chooseOrganization, withToolDatabase } from '../service/toolDatabase.js';
import { organizationOption, print, providerOption, type Terminal } from '../terminal/terminal.js';

interface BillOptions {
  provider: Provider;
  format?: BillingFormat;
  account?: string;
  fxRate?: string;
  org?: string;
}

export function command(terminal: Terminal): Command {
  return new Command('import')
    .addCommand(
      new Command('bills')
        .description("import a provider's bill from a file: docs/billing-files.md")
        .argument('<file>', 'the bill')
        .addOption(providerOption('whose bill').makeOptionMandatory())
        .option('--account <name>', 'account of the bill, where the file names none')
        .addOption(
          new Option('--format <format>', 'how the file is read (as its content shows)').choices(
            BILLING_FORMATS,
          ),
        )
        .addOption(
          new Option('--fx-rate <rate>', "US dollars for one unit of the file's currency").argParser(
            readFxRate,
          ),
        )
        .addOption(organizationOption())
        .action((file: string, options: BillOptions) => importBill(terminal, file, options)),
    )
    .addCommand(historyCommand(terminal))
    .addCommand(
      new Command('data')
        .description('bring an export into an empty database, that of DATABASE_URL or a new embedded one')
        .argument('<file>', 'a file that export data wrote')
        .action((file: string) => importData(terminal, resolve(file))),
    );
}

function readFxRate(text: string): string {
  if (parseFxRate(text)) return text;
  throw new Misuse(`--fx-rate is ${text}: give US dollars for one unit of the file's currency.`);
}

/** Imports by the same path as the API: stores at once, and a worker reads. */
async function importBill(terminal: Terminal, file: string, options: BillOptions): Promise<void> {
  const { provider, format = null, account = null, fxRate = null, org } = options;
  const outcome = await withToolDatabase(terminal.readConfig(), async (database) => {
    const orgDb = new OrgDb(database, await chooseOrganization(database, org));
    const importId = newUuid(microsFromDate(terminal.now()));
    return importBillFile(orgDb, importId, file, {
      provider,
      declaredFormat: format,
      declaredAccount: account,
      declaredFxRate: fxRate,
    });
  });
  print(terminal, readSummary(outcome));
  if (outcome.status === 'failed') terminal.exitCode = 1;
}

async function importData(terminal: Terminal, file: string): Promise<void> {
  endOnSignal();
  const began = performance.now();
  const config = terminal.readConfig();
  const { header, blobs, books, rows } = await importFromFile(config, file);
  const keys =
    config.databaseUrl === undefined
      ? `copy admin-key and secret-key of the old DATA_DIR into ${config.dataDir}, then npm start`
      : 'set TRUEUP_SECRET_KEY to what the old installation had (the text of its secret-key), then start';
  const lines = [
    `Imported ${rows.toLocaleString('en-US')} rows${blobs > 0 ? ` and ${blobs} uploaded files` : ''} in ${inSeconds(performance.now() - began)}, written ${header.created_at} from Postgres ${header.postgres_version}.`,
    `  books: ${describeBooks(books)}, as where they came from`,
    `  Next: ${keys}.`,
  ];
  print(terminal, lines.join('\n'));
}

type Declarations = Pick<UploadedBill, 'provider' | 'declaredFormat' | 'declaredAccount' | 'declaredFxRate'>;

const POLL_MS = 250;
/** Milliseconds for which a queued import is watched before the command ends. */
const PICKUP_MS = 15_000;

/**
 * Stores a bill's file as an upload and waits while a worker reads it. Returns it as queued when no worker does.
 * @throws StartError for a file that cannot be read, or whose account must be named.
 */
export async function importBillFile(
  orgDb: OrgDb,
  importId: string,
  path: string,
  declared: Declarations,
  pickupMs = PICKUP_MS,
): Promise<BillingSource> {
  const sizeBytes = await sizeOf(path);
  const receive = async (store: (chunk: Buffer) => Promise<void>) => {
    const hash = createHash('sha256');
    let read = 0;
    for await (const chunk of createReadStream(path, {
      highWaterMark: BILLING_PAGE_BYTES,
    }) as AsyncIterable<Buffer>) {
      hash.update(chunk);
      read += chunk.length;
      await store(chunk);
    }
    if (read !== sizeBytes) throw new StartError(`${path} changed while it was read: import it again.`);
    return { ...declared, filename: basename(path).slice(0, 255), sha256: hash.digest('hex'), sizeBytes };
  };
  const { source } = await storeBillingUpload(orgDb, importId, receive, undefined, recordImport).catch(
    (error: unknown) => {
      throw error instanceof DomainError && error.code === 'account_required'
        ? new StartError(`${error.message} (here: --account).`)
        : error;
    },
  );
  return watch(orgDb, source, pickupMs);
}

function recordImport(inside: OrgDb, { id, provider, filename, sha256 }: BillingSource): Promise<void> {
  return recordAudit(inside, {
    action: 'billing_import.created',
    actor: { kind: 'command', id: 'billing:import' },
    subject: { type: 'billing_import', id: publicId('imp', id) },
    details: { provider, filename, sha256 },
    requestId: null,
  });
}

async function sizeOf(path: string): Promise<number> {
  const found = await stat(path).catch(() => undefined);
  if (!found?.isFile()) throw new StartError(`${path} is no file that can be read.`);
  if (found.size === 0) throw new StartError(`${path} is empty.`);
  return found.size;
}

async function watch(orgDb: OrgDb, source: BillingSource, pickupMs: number): Promise<BillingSource> {
  const patience = performance.now() + pickupMs;
  let current = source;
  while (!RUN_TERMINAL_STATUSES.has(current.status)) {
    if (current.status === 'queued' && performance.now() > patience) return current;
    await sleep(POLL_MS);
    current = (await findRun(orgDb, BILLING_IMPORTS, source.id)) ?? current;
  }
  return current;
}

/** The outcome of an import, in a few lines. */
export function readSummary(source: BillingSource): string {
  const id = publicId('imp', source.id);
  if (source.status === 'queued') return `${id}: stored; it is read as soon as the service runs (npm start).`;
  if (source.status !== 'succeeded')
    return `${id}: ${source.status}: ${source.errorMessage ?? 'no reason was given'}`;
  const lines = [
    `${id}: ${source.rowCount} rows, ${decimalFromPico(source.amountPico ?? 0n)} USD, ${source.periodStart} to ${source.periodEnd}, account ${source.accountId ?? 'several'}, read as ${source.format}.`,
  ];
  if (source.restatedBuckets > 0)
    lines.push(`${source.restatedBuckets} buckets stand in the file more than once: the later copy counts.`);
  for (const { label, rows, amount_usd } of source.unparsed)
    lines.push(`not understood, kept as other: "${label}", ${rows} rows, ${amount_usd} USD`);
  return lines.join('\n');
}
