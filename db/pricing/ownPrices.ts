import type { Pico } from '../../domain/money.js';
import {
  OWN_RATE_CLASSES,
  type OwnPrice,
  type OwnPriceKind,
  type OwnRateClass,
} from '../../domain/pricing/ownPrices.js';
import type { PriceState } from '../../domain/pricing/priceBook.js';
import type { Database } from '../client.js';
import { type OrgDb, unscoped } from '../orgDb.js';
import {
  decimalOf,
  findPriceState,
  fromStoredTier,
  type StoredTier,
  splitRates,
  tierJson,
} from './prices.js';

type OwnPriceRow = Record<OwnRateClass, Pico | null> &
  Omit<OwnPrice, 'rates' | 'tiers'> & { tiers: readonly StoredTier[] };

const SELECT = `
select p.id, p.kind, p.revision, p.provider, p.model, p.discount_percent as "discountPercent", ${OWN_RATE_CLASSES.map((name) => `p.${name}`).join(', ')},
  p.tiers, p.batch_multiplier as "batchMultiplier", p.effective_from as "effectiveFrom", p.effective_to as "effectiveTo", p.source,
  p.created_at as "createdAtMicros", p.created_by as "createdBy", e.ends_on as "endsOn", e.ended_at as "endedAtMicros"
from own_prices p left join lateral (
  select min(ends_on) as ends_on, min(ended_at) as ended_at from own_price_ends o
  where o.org_id = p.org_id and o.own_price_id = p.id) e on true`;

function fromOwnPriceRow(row: OwnPriceRow): OwnPrice {
  const { other, rates } = splitRates(row, OWN_RATE_CLASSES);
  return {
    ...other,
    rates: other.discountPercent === null ? rates : null,
    tiers: other.tiers.map(fromStoredTier),
  };
}

/** The entered fields; the database sets the others. */
export type NewOwnPrice = Omit<OwnPrice, 'revision' | 'createdAtMicros' | 'endsOn' | 'endedAtMicros'>;

/** The next revision of an organization's own prices; locks them until the transaction ends. */
async function nextRevision(inside: OrgDb): Promise<number> {
  const [row] = await inside.rows<{ revision: number }>(
    `insert into own_price_state (org_id, revision, updated_at) values ($1, 1, clock_timestamp())
     on conflict (org_id) do update set revision = own_price_state.revision + 1,
       updated_at = greatest(clock_timestamp(), own_price_state.updated_at + interval '1 microsecond')
     returning revision`,
    [inside.orgId],
  );
  return row?.revision ?? 1;
}

/** Most entries of one kind in an organization, including ended ones: bounds the book that is built from them. */
export interface OwnPriceLimits {
  entriesMax: number;
  allModelsMax: number;
}

/** Stores an own price, in a transaction; undefined: the organization has reached its limit. */
export async function insertOwnPrice(
  inside: OrgDb,
  price: NewOwnPrice,
  limits: OwnPriceLimits,
): Promise<OwnPrice | undefined> {
  const revision = await nextRevision(inside);
  const stored = await inside.run(
    `insert into own_prices (org_id, id, kind, revision, provider, model, discount_percent, ${OWN_RATE_CLASSES.join(', ')},
         batch_multiplier, effective_from, effective_to, source, created_by, tiers)
       select $1::uuid, $2::uuid, $3::text, $4::bigint, $5::text, $6::text, $7::numeric, $8::numeric, $9::numeric, $10::numeric,
         $11::numeric, $12::numeric, $13::numeric, $14::date, $15::date, $16::jsonb, $17::text, $20::jsonb
       where (select count(*) from own_prices where org_id = $1::uuid and kind = $3::text) < $18
         and ($6 <> '*' or (select count(*) from own_prices where org_id = $1::uuid and kind = $3::text and model = '*') < $19)`,
    [
      inside.orgId,
      price.id,
      price.kind,
      revision,
      price.provider,
      price.model,
      decimalOf(price.discountPercent),
      ...OWN_RATE_CLASSES.map((name) => decimalOf(price.rates?.[name])),
      decimalOf(price.batchMultiplier),
      price.effectiveFrom,
      price.effectiveTo,
      price.source === null ? null : JSON.stringify(price.source),
      price.createdBy,
      limits.entriesMax,
      limits.allModelsMax,
      JSON.stringify((price.tiers ?? []).map(tierJson)),
    ],
  );
  return stored === 0 ? undefined : findOwnPrice(inside, price.kind, price.id);
}

export async function findOwnPrice(
  orgDb: OrgDb,
  kind: OwnPriceKind,
  id: string,
): Promise<OwnPrice | undefined> {
  const [row] = await orgDb.rows<OwnPriceRow>(`${SELECT} where p.org_id = $1 and p.kind = $2 and p.id = $3`, [
    ...[orgDb.orgId, kind, id],
  ]);
  return row && fromOwnPriceRow(row);
}

/** Ends an own price from a day on; undefined: it does not exist or ended by then. */
export async function insertOwnPriceEnd(
  inside: OrgDb,
  end: { kind: OwnPriceKind; id: string; endsOn: string; endedBy: string },
): Promise<OwnPrice | undefined> {
  const found = await findOwnPrice(inside, end.kind, end.id);
  if (!found || (found.endsOn !== null && found.endsOn <= end.endsOn)) return undefined;
  await inside.run(
    `insert into own_price_ends (org_id, own_price_id, revision, ends_on, ended_by) values ($1, $2, $3, $4, $5)`,
    [inside.orgId, end.id, await nextRevision(inside), end.endsOn, end.endedBy],
  );
  return findOwnPrice(inside, end.kind, end.id);
}

interface OwnPriceFilter {
  kind: OwnPriceKind;
  provider: string | undefined;
  model: string | undefined;
  /** Only entries that hold on this day. */
  day: string | undefined;
}

export async function listOwnPrices(
  orgDb: OrgDb,
  filter: OwnPriceFilter,
  page: { limit: number; offset: number },
): Promise<OwnPrice[]> {
  const rows = await orgDb.rows<OwnPriceRow>(
    `${SELECT} where p.org_id = $1 and p.kind = $2 and ($3::text is null or p.provider = $3) and ($4::text is null or p.model = $4)
       and ($5::date is null or (p.effective_from <= $5 and $5 < coalesce(least(p.effective_to, e.ends_on), 'infinity')))
     order by p.revision desc limit $6 offset $7`,
    [
      orgDb.orgId,
      filter.kind,
      filter.provider ?? null,
      filter.model ?? null,
      filter.day ?? null,
      page.limit,
      page.offset,
    ],
  );
  return rows.map(fromOwnPriceRow);
}

export interface OwnPriceRevision {
  revision: number;
  updatedAtMicros: bigint;
}

/**
 * All own prices of an organization that can hold on some day, and their revision. In a transaction with one snapshot.
 */
export async function loadOwnPrices(
  inside: OrgDb,
): Promise<{ prices: OwnPrice[]; state: OwnPriceRevision | undefined }> {
  const [state] = await inside.rows<OwnPriceRevision>(
    'select revision, updated_at as "updatedAtMicros" from own_price_state where org_id = $1',
    [inside.orgId],
  );
  if (!state) return { prices: [], state: undefined };
  const rows = await inside.rows<OwnPriceRow>(
    `${SELECT} where p.org_id = $1 and (e.ends_on is null or e.ends_on > p.effective_from) order by p.revision`,
    [inside.orgId],
  );
  return { prices: rows.map(fromOwnPriceRow), state };
}

/** The stored versions of prices: small rows, cheap enough to read every few seconds. */
export interface PriceVersions {
  /** Of the list; undefined: none is recorded. */
  list: PriceState | undefined;
  /** The latest revision of each organization with own prices. */
  own: Map<string, number>;
}

export async function readPriceVersions(database: Database): Promise<PriceVersions> {
  return unscoped(database, 'which prices have changed, whoever they belong to', async (system) => {
    const [list, own] = await Promise.all([
      findPriceState(system),
      system.rows<{ orgId: string; revision: number }>(
        'select org_id as "orgId", revision from own_price_state',
      ),
    ]);
    return { list, own: new Map(own.map(({ orgId, revision }) => [orgId, revision])) };
  });
}
