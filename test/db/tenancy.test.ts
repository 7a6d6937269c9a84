import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OrgDb } from '../../db/orgDb.js';
import { loadPriceBook } from '../../db/pricing/prices.js';
import { DomainError } from '../../domain/errors.js';
import type { TestApi } from '../support/api.js';
import { startFetchingPlace } from '../support/fetchingPlace.js';
import { listHandleFunctions } from './support/handleFunctions.js';
import { Belongings, comparable, isRefusedByRowSecurity } from './support/outcomes.js';
import { makeNeighbour, makeOwned, type Owned } from './support/ownedThings.js';
import { type Footing, Rehearsals, type Rehearsed } from './support/rehearsal.js';
import { ACROSS, NEUTRAL, TENANCY_CASES } from './support/tenancyCases.js';

/**
 * Two mechanisms protect an organization's rows from others: the predicate of each statement, and row-level security.
 * Each function of db/ is called with the ids of one organization (the owner) by another one that has all kinds of data
 * too (the neighbour) and by one without data (the stranger): unchanged, without the predicate, without row-level
 * security, and without both. Without both it must reveal or change something, or the test would prove nothing.
 */
let api: TestApi;
let rehearsals: Rehearsals;
let owner: Owned;
let neighbour: Awaited<ReturnType<typeof makeNeighbour>>;
let stranger: string;
let belongings: Belongings;

beforeAll(async () => {
  const place = await startFetchingPlace();
  ({ api } = place);
  await place.engine.startWorker();
  const prices = await loadPriceBook(api.database.database);
  [owner, neighbour] = await Promise.all([
    makeOwned(api, { marker: 'owned-by-a', provider: 'openai', prices, importedDaysAgo: 140 }),
    makeNeighbour(api, { marker: 'owned-by-b', provider: 'openai', prices, importedDaysAgo: 140 }),
  ]);
  stranger = (await api.addOrganization('stranger')).orgId;
  // From here on nothing else changes the data of the rehearsals.
  await place.engine.close();
  await neighbour.finish();
  const { superuser } = api.database;
  const ofOwner = { orgId: owner.org.orgId, markers: [owner.marker] };
  belongings = await Belongings.read(superuser, ofOwner, [neighbour.org.orgId, stranger]);
  rehearsals = new Rehearsals(api.database);
  await rehearsals.open();
}, 300_000);

afterAll(async () => {
  await rehearsals?.close();
  await api?.close();
});

/** No organization has this id. */
const NOBODY = randomUUID();
const NAMES = Object.keys(TENANCY_CASES);

function callOf(name: string): { run: (db: OrgDb, of: Owned) => Promise<unknown>; isSystem: boolean } {
  const entry = TENANCY_CASES[name];
  if (entry === undefined) throw new Error(`no case of ${name}`);
  return typeof entry === 'function' ? { run: entry, isSystem: false } : { run: entry.run, isSystem: true };
}

/** A failure of the database is no answer; a refusal by a rule is one. */
const isAnswer = ({ thrown }: Rehearsed) => thrown === undefined || thrown instanceof DomainError;

const rehearsed = new Map<string, Promise<Rehearsed>>();

/** Calls a function with the owner's ids; on the same footing it is the same each time, and done once. */
function rehearse(name: string, footing: Footing): Promise<Rehearsed> {
  const place = `${name} ${footing.asks} ${footing.bound}`;
  const { run } = callOf(name);
  const seen = rehearsed.get(place) ?? rehearsals.run(footing, owner.org.orgId, (db) => run(db, owner));
  rehearsed.set(place, seen);
  return seen;
}

function expectNothingOfOwner(seen: Rehearsed): void {
  expect({ shown: belongings.findIn(seen), changed: seen.changed }).toEqual({ shown: [], changed: [] });
}

describe('every exported function of db/ that takes a handle', () => {
  it('has a case, or is named with the reason why it concerns no one organization', async () => {
    const found = (await listHandleFunctions()).map(({ name }) => name);
    const cases = [...NAMES, ...Object.keys(NEUTRAL), ...Object.keys(ACROSS)];
    // A function that serves every kind of run has a case for each kind: `findRun of gap_run`.
    const known = cases.map((name) => name.replace(/ of \w+$/, ''));
    expect(
      found.filter((name) => !known.includes(name)),
      'without a case',
    ).toEqual([]);
    expect(
      known.filter((name) => !found.includes(name)),
      'of nothing that is there',
    ).toEqual([]);
    expect(
      cases.filter((name, at) => cases.indexOf(name) !== at),
      'named twice',
    ).toEqual([]);
    expect(
      found.filter((name, at) => found.indexOf(name) !== at),
      'one name for two functions',
    ).toEqual([]);
  });
});

describe.each(NAMES)('%s', (name) => {
  const { isSystem } = callOf(name);

  it('unchanged: another organization sees and changes nothing', async () => {
    for (const other of [stranger, neighbour.org.orgId])
      expectNothingOfOwner(await rehearse(name, { asks: other, bound: other }));
  });

  const itUnderRowSecurity = isSystem ? () => undefined : it;
  itUnderRowSecurity('without the predicate: row-level security holds', async () => {
    const asks = owner.org.orgId;
    const seen = await rehearse(name, { asks, bound: stranger });
    expectNothingOfOwner(seen);
    if (!isRefusedByRowSecurity(seen)) {
      const nothing: string[] = [];
      for (const id of [stranger, NOBODY])
        nothing.push(comparable(await rehearse(name, { asks: id, bound: id })));
      expect(nothing).toContain(comparable(seen));
    }
    expectNothingOfOwner(await rehearse(name, { asks, bound: neighbour.org.orgId }));
  });

  it('without row-level security: the predicate holds', async () => {
    for (const other of [stranger, neighbour.org.orgId]) {
      const seen = await rehearse(name, { asks: other, bound: null });
      expectNothingOfOwner(seen);
      expect(comparable(seen)).toBe(comparable(await rehearse(name, { asks: other, bound: other })));
    }
  });

  it('without both: it shows or changes something, so the others prove something', async () => {
    const both = await rehearse(name, { asks: owner.org.orgId, bound: null });
    const nothing = await rehearse(name, { asks: stranger, bound: stranger });
    const isSeen =
      belongings.findIn(both).length > 0 ||
      both.changed.length > 0 ||
      (isAnswer(both) && comparable(both) !== comparable(nothing));
    expect(isSeen, `given ${comparable(both)}`).toBe(true);
  });
});
