import { randomUUID } from 'node:crypto';
import * as periodBills from '../../../../db/billing/periods.js';
import * as periods from '../../../../db/billing/periods.js';
import * as ownPrices from '../../../../db/pricing/ownPrices.js';
import { closePeriod, listMonths, readPeriod } from '../../../../usecases/billing/periods.js';
import { createOwnPrice, endOwnPrice, storeOwnPrice } from '../../../../usecases/pricing/ownPrices.js';
import { CLOSED_MONTH } from '../ownedBills.js';
import { OWN_PRICE_LIMITS } from '../ownedThings.js';
import type { TenancyCase } from './tenancyCase.js';

const NEW_SOURCE = { document: 'new', clause: null, url: null };
const PAGE = { limit: 100, offset: 0 };

/** Functions of an organization's further data: closed months and own prices. */
export const ORGANIZATION_CASES: Record<string, TenancyCase> = {
  closePeriod: {
    asSystem: 'a closing excludes the fold, which is maintenance, through the row that both lock',
    run: (db) =>
      closePeriod(db.database, db.orgId, {
        month: '2026-04',
        closedBy: 'key_b',
        nowMicros: 4_000_000_000_000_000n,
      }),
  },
  listPeriodClosings: (db) => periods.listPeriodClosings(db),
  findPeriodClosing: (db) => periods.findPeriodClosing(db, CLOSED_MONTH),
  listMonths: (db) => listMonths(db, CLOSED_MONTH),
  readPeriod: (db) => readPeriod(db, CLOSED_MONTH),
  findFrozenTotals: (db) => periods.findFrozenTotals(db, CLOSED_MONTH),
  listFrozenSums: (db) => periods.listFrozenSums(db),
  findFirstMonth: (db) => periods.findFirstMonth(db),
  listFrozenBills: (db) => periodBills.listFrozenBills(db, CLOSED_MONTH),
  listBilledAdjustments: (db) => periodBills.listBilledAdjustments(db),
  insertOwnPrice: (db, { ownPrice }) =>
    ownPrices.insertOwnPrice(
      db,
      { ...ownPrice, id: randomUUID(), source: NEW_SOURCE, createdBy: 'new' },
      OWN_PRICE_LIMITS,
    ),
  findOwnPrice: (db, { ownPrice }) => ownPrices.findOwnPrice(db, 'contract', ownPrice.id),
  insertOwnPriceEnd: (db, { ownPrice }) =>
    ownPrices.insertOwnPriceEnd(db, {
      kind: 'contract',
      id: ownPrice.id,
      endsOn: '2026-06-01',
      endedBy: 'key_b',
    }),
  createOwnPrice: (db, { ownPrice }) =>
    createOwnPrice(
      db,
      { ...ownPrice, id: randomUUID(), source: NEW_SOURCE },
      { caller: { keyId: 'key_b' }, requestId: 'req_1' },
    ),
  storeOwnPrice: (db, { ownPrice }) =>
    storeOwnPrice(
      db,
      { ...ownPrice, id: randomUUID(), source: NEW_SOURCE },
      { caller: { keyId: 'key_b' }, requestId: 'req_2' },
    ),
  endOwnPrice: (db, { ownPrice, keyId }) =>
    endOwnPrice(
      db,
      { kind: 'contract', id: ownPrice.id, endsOn: '2026-06-01' },
      { caller: { keyId }, requestId: 'req_1' },
    ),
  listOwnPrices: (db) =>
    ownPrices.listOwnPrices(
      db,
      { kind: 'contract', provider: undefined, model: undefined, day: undefined },
      PAGE,
    ),
  loadOwnPrices: (db) => ownPrices.loadOwnPrices(db),
};
