import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Database } from '../../db/client.js';
import { type SystemDb, unscoped } from '../../db/orgDb.js';
import {
  beginPriceChange,
  findPriceState,
  insertPricePeriods,
  listPriceImports,
  listRecordedModels,
  type NewPeriod,
  type PriceChange,
  type PriceStateRow,
  type RecordedModel,
  recordPriceState,
  upsertPriceModels,
  withdrawPriceModels,
} from '../../db/pricing/prices.js';
import { newUuid } from '../../domain/ids.js';
import type { PriceImport } from '../../domain/pricing/importedPrices.js';
import {
  type PriceEntry,
  type PriceFile,
  priceVersionName,
  readPriceFile,
} from '../../domain/pricing/priceFile.js';

export interface SeedResult {
  /** Number of new, changed or withdrawn entries; 0 when the list was read before. */
  changed: number;
  /** The version of the present prices. */
  version: string;
  /** `provider model` of entries whose imports the list supersedes, because the list changed them later. */
  overtaken: string[];
}

/** data/prices.json beside the sources, or above the folder of the build. */
function shippedList(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  for (let parent = dirname(folder); parent !== folder; folder = parent, parent = dirname(folder)) {
    const path = join(folder, 'data', 'prices.json');
    if (existsSync(path)) return path;
  }
  throw new Error('data/prices.json is missing: this installation is not complete');
}

/**
 * Updates the stored prices to the shipped list: appends changes and keeps history. Safe to run any number of times and
 * from many processes at once; a list that was read before costs its digest and one query. A list older than the stored
 * one is ignored, so that an old process that starts late does not revert prices.
 * @throws RangeError when the list is invalid; DomainError service_unavailable when the database is unreachable.
 */
export async function seedPrices(database: Database, listPath = shippedList()): Promise<SeedResult> {
  const bytes = await readFile(listPath);
  const listSha256 = createHash('sha256').update(bytes).digest('hex');
  const why = 'list prices belong to no organization';
  const before = await unscoped(database, why, findPriceState);
  if (before?.listSha256 === listSha256) {
    return unchanged(before);
  }
  const list = readPriceFile(JSON.parse(bytes.toString('utf8')));
  return unscoped(database, why, (system) => applyList(system, list, listSha256));
}

function unchanged(state: PriceStateRow): SeedResult {
  return { changed: 0, version: priceVersionName(state.updatedAtMicros, state.contentHash), overtaken: [] };
}

async function applyList(system: SystemDb, list: PriceFile, listSha256: string): Promise<SeedResult> {
  const change = await beginPriceChange(system);
  const { state } = change;
  if (state && (state.listSha256 === listSha256 || state.listAsOf > list.asOf)) {
    return unchanged(state);
  }
  const recorded = new Map((await listRecordedModels(system)).map((model) => [keyOf(model), model]));
  const changed = list.entries
    .map((entry) => compareEntry(entry, recorded.get(keyOf(entry.model)), list.asOf))
    .filter((entry) => entry.modelChanged || entry.periodsChanged);
  const listed = new Set(list.entries.map((entry) => keyOf(entry.model)));
  const withdrawn = [...recorded.values()].filter((model) => !model.withdrawn && !listed.has(keyOf(model)));
  await upsertPriceModels(system, change, changed);
  await insertPricePeriods(
    system,
    change,
    changed.flatMap((entry) => newPeriods(entry, change)),
  );
  await withdrawPriceModels(system, change, withdrawn);
  const imports = await listPriceImports(system);
  const listContentHash = sha256(
    list.entries
      .map((entry) => compareEntry(entry, undefined, list.asOf))
      .map((one) => `${one.modelHash} ${one.periodsHash}`),
  );
  const nothing = changed.length === 0 && withdrawn.length === 0;
  const updatedAtMicros = nothing && state ? state.updatedAtMicros : change.atMicros;
  const contentHash = priceContentHash(
    listContentHash,
    imports.map((one) => one.id),
  );
  await recordPriceState(system, {
    listSha256,
    listAsOf: list.asOf,
    contentHash,
    listContentHash,
    updatedAtMicros,
  });
  return {
    changed: changed.length + withdrawn.length,
    version: priceVersionName(updatedAtMicros, contentHash),
    overtaken: overtakenBy(changed, imports),
  };
}

/** Identifies the prices in force; equals the list's hash without imports. */
export function priceContentHash(listContentHash: string, importIds: readonly string[]): string {
  return importIds.length === 0 ? listContentHash : sha256([listContentHash, ...importIds]);
}

/** Entries that the list has just changed and whose imports are older. */
function overtakenBy(changed: readonly ComparedEntry[], imports: readonly PriceImport[]): string[] {
  const idsOf = ({ entry: { model } }: ComparedEntry) =>
    [model.model, ...model.aliases].map((id) => keyOf({ provider: model.provider, model: id }));
  return changed
    .filter(
      (one) =>
        one.periodsChanged &&
        imports.some(
          ({ retrievedOn, prices }) =>
            retrievedOn < one.periodsAsOf && prices.some((price) => idsOf(one).includes(keyOf(price))),
        ),
    )
    .map(({ entry: { model } }) => `${model.provider} ${model.model}`);
}

/** An entry of the list with its recorded state. */
export interface ComparedEntry {
  readonly entry: PriceEntry;
  readonly modelHash: string;
  readonly periodsHash: string;
  /** Date of the list that its periods are from. */
  readonly periodsAsOf: string;
  readonly modelChanged: boolean;
  readonly periodsChanged: boolean;
  /** The revision of its periods, stored or about to be. */
  readonly revision: number;
}

function compareEntry(
  entry: PriceEntry,
  recorded: RecordedModel | undefined,
  listAsOf: string,
): ComparedEntry {
  const modelHash = sha256(entry.model);
  const periodsHash = sha256(entry.periods);
  const periodsChanged = recorded?.periodsHash !== periodsHash;
  const modelChanged = !recorded || recorded.withdrawn || recorded.modelHash !== modelHash;
  const revision = (recorded?.revision ?? 0) + (periodsChanged ? 1 : 0);
  const periodsAsOf = periodsChanged ? listAsOf : recorded.periodsAsOf;
  return { entry, modelHash, periodsHash, periodsAsOf, modelChanged, periodsChanged, revision };
}

function newPeriods(compared: ComparedEntry, change: PriceChange): NewPeriod[] {
  if (!compared.periodsChanged) return [];
  const { provider, model } = compared.entry.model;
  return compared.entry.periods.map((period) => ({
    id: newUuid(change.atMicros),
    provider,
    model,
    revision: compared.revision,
    period,
  }));
}

function keyOf({ provider, model }: { provider: string; model: string }): string {
  return `${provider}\n${model}`;
}

/** Digest of a value as JSON; the list's reader fixes the order of keys. */
function sha256(value: unknown): string {
  const text = JSON.stringify(value, (_, item: unknown) =>
    typeof item === 'bigint' ? item.toString() : item,
  );
  return createHash('sha256').update(text).digest('hex');
}
