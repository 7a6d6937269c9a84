/** The product's prices for a world: the shipped list, the world's changes to it, and its contracts. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  createContractRateBody,
  createOverrideBody,
  entryOfBody,
} from '../../../api/pricing/ownPrices/wire.js';
import { bookWithOwnPrices, type OwnPrice, type OwnPriceKind } from '../../../domain/pricing/ownPrices.js';
import { PriceBook } from '../../../domain/pricing/priceBook.js';
import { readPriceFile } from '../../../domain/pricing/priceFile.js';
import type { ChargePrices } from '../../../domain/reconciliation/matching/charges.js';
import type { GeneratedWorld } from '../../generators/world.js';

const STATE = { updatedAtMicros: 0n, contentHash: '00000000' };

interface PriceListJson {
  models: { provider: string; model: string }[];
}

/** Works from the sources and from the built files. */
export function repositoryRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'data', 'prices.json'))) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error('data/prices.json is missing: this is no whole clone');
    folder = parent;
  }
  return folder;
}

/** The shipped list, with the world's entries replacing those of the same models. */
export function priceListOf(world: Pick<GeneratedWorld, 'priceListChanges'>): PriceListJson {
  const path = join(repositoryRoot(), 'data', 'prices.json');
  const list = JSON.parse(readFileSync(path, 'utf8')) as PriceListJson;
  const changes = world.priceListChanges as PriceListJson['models'];
  const keyOf = (entry: { provider: string; model: string }) => `${entry.provider}\n${entry.model}`;
  const changed = new Set(changes.map(keyOf));
  return { ...list, models: [...list.models.filter((entry) => !changed.has(keyOf(entry))), ...changes] };
}

/** The book of agreed prices and the list without contracts, as a gap run receives them. */
export function pricesOf(
  world: Pick<GeneratedWorld, 'priceListChanges' | 'contracts' | 'overrides'>,
): ChargePrices {
  const { entries } = readPriceFile(priceListOf(world));
  const listed = PriceBook.from(
    entries.map(({ model }) => ({ ...model, updatedAtMicros: 0n })),
    entries.flatMap(({ model: { provider, model }, periods }) =>
      periods.map((period) => ({ ...period, provider, model, id: '', recordedAtMicros: 0n })),
    ),
    STATE,
  );
  const own = [
    ...(world.overrides ?? []).map((body, at) => ownPrice('override', createOverrideBody.parse(body), at)),
    ...world.contracts.map((body, at) => ownPrice('contract', createContractRateBody.parse(body), at)),
  ];
  const agreed = bookWithOwnPrices(listed, own, STATE);
  return { agreed, list: agreed.list };
}

const ID_FACTORS: Record<OwnPriceKind, number> = { contract: 1, override: 1_000_000 };

function ownPrice(kind: OwnPriceKind, body: Parameters<typeof entryOfBody>[0], index: number): OwnPrice {
  return {
    ...entryOfBody(body),
    id: `00000000-0000-4000-8000-${String((index + 1) * ID_FACTORS[kind]).padStart(12, '0')}`,
    kind,
    revision: index + 1,
    createdAtMicros: 0n,
    createdBy: 'bench',
    endsOn: null,
    endedAtMicros: null,
  };
}
