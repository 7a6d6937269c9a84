import type { StorableEvent } from '../../../../db/events/eventColumns.js';
import { readMarkedRules } from '../../../../db/events/ingest.js';
import { callOfStored, type StoredEvent, storableOf } from '../../../../db/events/storedEvents.js';
import type { OrgDb } from '../../../../db/orgDb.js';
import {
  insertPolicyAlerts,
  newAlert,
  publishPolicyAlerts,
  SettledCalls,
  settleAlerts,
} from '../../../../db/policies/policyAlerts.js';
import type { PriceBook } from '../../../../domain/pricing/priceBook.js';
import type { Owned } from '../ownedThings.js';
import type { TenancyCase } from './tenancyCase.js';

type Calls = Pick<Owned, 'live' | 'other' | 'prices'>;

const storable = (event: StoredEvent, prices: PriceBook): StorableEvent =>
  storableOf(event, callOfStored(event, null), prices);

const alertOf = (event: StorableEvent, policyType: 'approved_models' | 'banned_patterns') =>
  newAlert(event, { policyType, policyId: 1, severity: 'medium', message: 'of a call', details: {} });

const bannedOf = ({ live, other, prices }: Calls) =>
  [live, other].map((event) => alertOf(storable(event, prices), 'banned_patterns'));

/** Functions that judge calls at ingest, and store alerts. */
export const POLICY_ALERT_CASES: Record<string, TenancyCase> = {
  readMarkedRules: (db) => readMarkedRules(db),
  insertPolicyAlerts: (db, { live, prices }) =>
    insertPolicyAlerts(db, [alertOf(storable(live, prices), 'approved_models')]),
  publishPolicyAlerts: (db, of) =>
    publishPolicyAlerts(
      db,
      bannedOf(of).map(({ id }) => id),
    ),
  settleAlerts: (db, { live, other, prices }) => {
    const settled = new SettledCalls();
    settled.note({ event: storable(live, prices), costBefore: null, said: [] }, other.id);
    return settleAlerts(db, settled, [], () => []);
  },
};

/** Creates the data of the cases above: both calls have broken a policy. */
export async function makePolicyAlerts(db: OrgDb, calls: Calls): Promise<void> {
  await insertPolicyAlerts(db, bannedOf(calls));
}
