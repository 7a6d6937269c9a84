/** Gets a world's bills like the product: pages through its connectors, files through its readers. */
import type { BillingConnector } from '../../../adapters/billing/connector.js';
import { createBillingConnectors } from '../../../adapters/billing/connectors.js';
import { type BillingFileOptions, readBillingFile } from '../../../adapters/billing/file.js';
import type { BilledRow } from '../../../domain/billing/billedRow.js';
import { pageKindOf } from '../../../domain/billing/pageRow.js';
import { type BillingFormat, provisionalDaysOf } from '../../../domain/billing/sources.js';
import { dayOf, MICROS_PER_DAY, microsOfDay } from '../../../domain/period.js';
import { isProvider, type Provider } from '../../../domain/providers.js';
import type { BillDocument, GeneratedWorld } from '../../generators/world.js';
import { type BillServer, startBillServer } from './billServer.js';

/** A row with the properties of its source. */
export interface SourcedRow {
  provider: Provider;
  accountId: string;
  format: BillingFormat;
  row: BilledRow;
}

/** A day of an account that a cost feed covers, with or without charges. */
export interface CoveredDay {
  provider: Provider;
  accountId: string;
  day: string;
  provisionalDays: number;
}

export interface FetchedBills {
  rows: SourcedRow[];
  covered: CoveredDay[];
}

interface Account {
  provider: Provider;
  accountId: string;
  documents: BillDocument[];
}

/** Fetches and reads all documents of a world at one visibility. */
export async function fetchBills(
  world: GeneratedWorld,
  documents: readonly BillDocument[],
): Promise<FetchedBills> {
  const server = await startBillServer(documents);
  try {
    const bills: FetchedBills = { rows: [], covered: [] };
    for (const account of accountsOf(documents)) {
      const isServed = account.documents.some(({ feed }) => FILE_FORMATS[feed] === undefined);
      if (isServed) await fetchAccount(world, account, server, bills);
      else for (const document of account.documents) await readFile(account, document, bills);
    }
    return bills;
  } finally {
    await server.close();
  }
}

/** Documents that are read as files, like saved answers; the server answers with the others. */
const FILE_FORMATS: Partial<Record<BillDocument['feed'], BillingFormat>> = {
  plain_csv: 'plain_csv',
  aws_costs: 'aws_ce_pages',
  azure_costs: 'azure_query_pages',
};

function accountsOf(documents: readonly BillDocument[]): Account[] {
  const accounts = new Map<string, Account>();
  for (const document of documents) {
    const { provider, accountId } = document;
    if (!isProvider(provider)) throw new RangeError(`${provider} is not a provider`);
    const key = `${provider}\n${accountId}`;
    const account = accounts.get(key) ?? { provider, accountId, documents: [] };
    account.documents.push(document);
    accounts.set(key, account);
  }
  return [...accounts.values()];
}

async function fetchAccount(
  world: GeneratedWorld,
  { provider, accountId }: Account,
  server: BillServer,
  bills: FetchedBills,
): Promise<void> {
  if (provider !== 'openai' && provider !== 'anthropic')
    throw new RangeError(`the bills of ${provider} cannot be fetched`);
  const nowMicros = BigInt(world.readAtSeconds) * 1_000_000n;
  const connector: BillingConnector = createBillingConnectors(
    {
      openai: server.origin,
      anthropic: server.origin,
      azureManagement: server.origin,
      azureLogin: server.origin,
      awsCostExplorer: server.origin,
    },
    { nowMicros: () => nowMicros, nowMs: () => performance.now(), requestGapMs: 0 },
  )[provider];
  const access = {
    credentials: { admin_key: server.keyOf(provider, accountId) },
    settings: {},
    signal: new AbortController().signal,
  };
  const format: BillingFormat = provider === 'openai' ? 'openai_pages' : 'anthropic_pages';
  const window = { fromDay: world.firstDay, toDay: dayOf(microsOfDay(world.lastDay) + MICROS_PER_DAY) };
  for (const chunk of connector.plan(window, nowMicros)) {
    const bodies: Buffer[] = [];
    let cursor: string | null = null;
    do {
      const page = await connector.fetchPage(access, chunk, cursor);
      bodies.push(page.body);
      cursor = page.nextCursor;
      if (chunk.feed === 'cost')
        for (const { startMicros } of page.buckets)
          bills.covered.push(coveredDay(provider, accountId, dayOf(startMicros), format));
    } while (cursor !== null);
    const expected = pageKindOf(provider, chunk.feed, chunk.report);
    await readInto(bills, { provider, accountId, format }, bodies, { expected, mayBeEmpty: true });
  }
}

function coveredDay(provider: Provider, accountId: string, day: string, format: BillingFormat): CoveredDay {
  return { provider, accountId, day, provisionalDays: provisionalDaysOf([format], null, day) };
}

async function readFile(account: Account, document: BillDocument, bills: FetchedBills): Promise<void> {
  const { provider, accountId } = account;
  const format = FILE_FORMATS[document.feed] ?? 'plain_csv';
  const first = bills.rows.length;
  await readInto(bills, { provider, accountId, format }, [Buffer.from(document.text)], { asked: 'usage' });
  const finality = new Map<string, boolean | null>();
  for (const { row } of bills.rows.slice(first))
    finality.set(row.day, finality.get(row.day) === false ? false : row.isFinal);
  for (const [day, isFinal] of finality)
    bills.covered.push({
      provider,
      accountId,
      day,
      provisionalDays: provisionalDaysOf([format], isFinal, day),
    });
}

async function readInto(
  bills: FetchedBills,
  source: Omit<SourcedRow, 'row'>,
  bodies: readonly Buffer[],
  more: Partial<BillingFileOptions>,
): Promise<void> {
  async function* chunks() {
    yield* bodies;
  }
  const options = {
    provider: source.provider,
    format: source.format,
    fxRate: undefined,
    skip: new Set<number>(),
    ...more,
  };
  for await (const batch of readBillingFile(chunks(), options))
    for (const { row } of batch) bills.rows.push({ ...source, row });
}
